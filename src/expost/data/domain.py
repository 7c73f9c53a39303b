"""What is publicly known about a record, and the encoding that follows from it."""

import math
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError, model_validator

from expost._common.files import atomic_write
from expost._common.summary import Summarized, Summary
from expost._common.typing import FloatArray
from expost._common.validation import LibraryName, UnitName
from expost.data.choices import RangeChoice
from expost.data.dialect import PLAIN, Dialect
from expost.data.features import Feature, Interaction, check_defaults, check_interactions
from expost.data.labels import Class, Classified, Label, NumericLabel, RowsLabel, label_parts
from expost.data.refusals import check_chosen, check_filled, error_in_file, explained
from expost.data.texts import Contact, InOrder, PublicationTexts, Text, Texts, toml_lines, toml_value
from expost.exceptions import DomainError, printable

# How many features, and how many characters of their values, are shown of a domain.
_MOST_FEATURES, _LONGEST_LIST = 50, 80
MOST_ROWS = 1_000_000
"""The largest number of rows that can be declared for a person."""


def domain_text(path: str | os.PathLike[str]) -> str:
    """The text of a domain file, or DomainError."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        # Its names and texts are published: none of them may be guessed.
        raise DomainError("the domain file must be text in UTF-8. Save it again as UTF-8.") from None


class Domain(Summarized, Texts):
    """What is publicly known about a record: declared, never learnt from a table.

    :meth:`encode` turns records into rows, for the curator's table and for a reader's single record. The page
    uses the same encoding.

    Parameters
    ----------
    features
        In the order of the encoded columns.
    label
        The outcome.
    norm
        The largest length of an encoded row; longer ones are scaled down, in the fit and in predictions. By
        default it follows from the number of features, see :attr:`row_norm`.
    interactions
        Pairs of features whose columns are multiplied, after the columns of all features.
    publication
        What the publisher says to the people who read the page, see
        :class:`expost.data.texts.PublicationTexts`.
    table
        How the files of the table are written. It is not published.
    missing_words
        Words for a missing value in a person's own file, which the page reads; by default those of ``table``.
    person
        The column that says whose a row is, where people have several rows. The promise is then for each
        person with all of her rows. Neither the ids nor the column's name is published.
    rows_per_person
        With None each person counts once, and a row weighs one divided by the number of her rows: the model
        is of the average person. With a number n a row weighs 1/n, or less where somebody has more of them:
        rows count alike, and the model is of the average row.
    choices
        Ends of ranges that `expost choose` chose from the table, with what that cost: they are published, and
        every figure counts them.
    ignore
        Columns of the table that the model must not use, such as identifiers. They are not published. Columns
        that are named nowhere are not used either; ``expost check`` lists them.

    Privacy
    -------
    Public. An error names a feature and what was declared about it, never a value, a row or a count.

    Examples
    --------
    >>> from expost import Category, ClassLabel, Domain, Number
    >>> age = Number(name="age", low=0.0, high=100.0)
    >>> ward = Category(name="ward", categories=("north", "south"))
    >>> domain = Domain(features=(age, ward), label=ClassLabel(name="ill", classes=("no", "yes")))
    >>> domain.column_names, round(domain.row_norm, 4)
    (['age', 'ward=north', 'ward=south'], 1.0)
    >>> domain.encode({"age": [25.0, 140.0], "ward": ["north", "south"]})
    array([[-0.5,  1. ,  0. ],
           [ 1. ,  0. ,  1. ]])
    """

    features: Annotated[tuple[Feature, ...], Field(min_length=1, strict=False), InOrder]
    label: Label
    norm: Annotated[float, Field(gt=0.0)] | None = None
    publication: PublicationTexts | None = None
    table: Annotated[Dialect, Field(exclude=True)] = PLAIN
    person: Annotated[Text | None, Field(exclude=True)] = None
    rows_per_person: Annotated[int | None, Field(exclude=True, ge=1, le=MOST_ROWS)] = None
    ignore: Annotated[tuple[Text, ...], Field(exclude=True, strict=False)] = ()

    missing_words: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    interactions: Annotated[tuple[Interaction, ...], Field(strict=False)] = ()
    choices: Annotated[tuple[RangeChoice, ...], Field(strict=False)] = ()

    text_names = ("publication", "missing_words")
    added_names = ("interactions", "choices")

    @model_validator(mode="before")
    @classmethod
    def _words_of_table(cls, content: Any) -> Any:
        """Words for a missing value in a person's own file: by default those of the table."""
        if not isinstance(content, Mapping) or "missing_words" in content:
            return content
        table = content.get("table")
        words = (
            table.get("missing_words") if isinstance(table, Mapping) else getattr(table, "missing_words", ())
        )
        return {**content, "missing_words": words} if words else content

    @model_validator(mode="after")
    def _has_people(self) -> Self:
        if self.rows_per_person is not None and self.person is None:
            raise ValueError("`rows_per_person` must be left out where no `person` is declared")
        if self.person is not None and isinstance(self.label, RowsLabel):
            raise ValueError(
                f"`person` must be left out with kind = {self.label.kind!r}: each record is a person of her "
                "own. Keep one record of each person"
            )
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [part.name for part in (*self.features, *label_parts(self.label))]
        if again := [name for name, times in Counter(names).items() if times > 1]:
            raise ValueError(
                f"`{printable(again[0])}` is declared twice: features and label must have different names"
            )
        if self.person in names:
            raise ValueError("`person` must name a column that is neither a feature nor the label")
        if twice := set(self.ignore) & {*names, self.person}:
            raise ValueError(f"`{printable(min(twice))}` is in `ignore` and declared too; delete one")
        check_interactions(self.interactions, self.features)
        if len(set(self.column_names)) < len(self.column_names):
            raise ValueError("a feature must not be named like a category of another, such as 'ward=north'")
        return self

    @model_validator(mode="after")
    def _choices_declared(self) -> Self:
        names = {part.name for part in (*self.features, self.label)}
        if not names.issuperset(one.column for one in self.choices):
            raise ValueError("`choices` must be of the ranges of declared columns")
        if len({one.id for one in self.choices}) < len(self.choices):
            raise ValueError("`choices` must have different ids: a choice counts once")
        return self

    @model_validator(mode="after")
    def _aliases_differ(self) -> Self:
        names = [self.person or "", *(part.name for part in (*self.features, self.label))]
        taken = {name.strip().casefold() for name in names}
        for part in (*self.features, self.label):
            for alias in part.aliases:
                if alias.casefold() in taken:
                    raise ValueError(f"`aliases` of `{printable(part.name)}` must be names of no other field")
                taken.add(alias.casefold())
        return self

    @property
    def row_norm(self) -> float:
        r"""The largest length of an encoded row, as declared or by a rule in public values.

        .. math:: R = \max\{1, \sqrt{F/2}\}

        with :math:`F` features and interactions. Most records are shorter than :attr:`longest_row`, and the
        noise grows with the declared length: docs/calibration.md has the measurements. A single feature is
        never cut.
        """
        return max(1.0, math.sqrt(0.5 * self._terms)) if self.norm is None else self.norm

    @property
    def longest_row(self) -> float:
        r""":math:`\sqrt F`, the largest length that the features allow: each adds at most 1 to its square."""
        return math.sqrt(self._terms)

    @property
    def _terms(self) -> int:
        parts = [feature.parts for feature in self.features]
        return sum(parts) + sum(parts[left] * parts[right] for left, right in self.multiplied)

    @property
    def classes(self) -> tuple[Class, ...] | None:
        """The declared classes of the outcome; None where it is a number."""
        return self.label.classes if isinstance(self.label, Classified) else None

    @property
    def unit(self) -> UnitName:
        """Whose plan a model has: a person's where rows are hers, or a record is several rows."""
        return "person" if isinstance(self.label, RowsLabel) else self.promised_to

    @property
    def promised_to(self) -> UnitName:
        """Whom a model promises to: a record of several rows is one row of the table."""
        return "row" if self.person is None else "person"

    @property
    def without_people(self) -> Self:
        """The domain of records one by one, whoever they belong to: as they are predicted and scored."""
        return self.model_copy(update={"person": None, "rows_per_person": None})

    @property
    def checked(self) -> tuple[Any, ...]:
        """What every column must be: the features, and the outcome's one column or two."""
        return (*self.features, *label_parts(self.label))

    @cached_property
    def column_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [" × ".join(names) for names in self.factors]

    @cached_property
    def factors(self) -> list[tuple[str, ...]]:
        """For each encoded column its name, or those of the two columns that are multiplied."""
        names = [feature.column_names for feature in self.features]
        pairs = [(a, b) for left, right in self.multiplied for a in names[left] for b in names[right]]
        return [*((name,) for name in chain.from_iterable(names)), *pairs]

    @cached_property
    def multiplied(self) -> list[tuple[int, int]]:
        """The places of the two features of each interaction."""
        places = {feature.name: place for place, feature in enumerate(self.features)}
        return [(places[a], places[b]) for a, b in (one.product for one in self.interactions)]

    @cached_property
    def coef_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """The lower and the upper bounds of the columns' coefficients, where a feature has an effect."""
        if all(feature.effect is None for feature in self.features):
            return None
        ends = [one for feature in self.features for one in feature.coef_bounds]
        ends += [(-math.inf, math.inf)] * (len(self.column_names) - len(ends))
        low, high = zip(*ends, strict=True)
        return low, high

    def encode(self, columns: Mapping[str, Any]) -> FloatArray:
        """Encode records as rows of numbers, as the page does.

        ``columns`` maps each feature's name to its values, all of one length.
        """
        codes = [feature.coded(np.asarray(columns[feature.name])) for feature in self.features]
        return np.column_stack(self.expanded(codes)).astype(np.float64)

    def expanded(self, codes: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The columns of numbers, or of ones and zeros, from the coded columns of the features."""
        blocks = [feature.expanded(code) for feature, code in zip(self.features, codes, strict=True)]
        products = (a * b for left, right in self.multiplied for a in blocks[left] for b in blocks[right])
        return [*chain.from_iterable(blocks), *products]

    def scale_outcome(self, values: FloatArray) -> FloatArray:
        """Clip a numeric outcome to its bounds and map it to [-1, 1], the scale of the fit."""
        return self.label.scaled(values) if isinstance(self.label, NumericLabel) else values

    def unscale_outcome(self, values: FloatArray) -> FloatArray:
        """Map predictions back to the units of the outcome."""
        return self.label.unscaled(values) if isinstance(self.label, NumericLabel) else values

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a domain file, or raise DomainError; ``expost init`` writes one to fill in."""
        return cls.from_toml(domain_text(path))

    @classmethod
    def from_toml(cls, text: str, *, change: Callable[[dict[str, Any]], None] | None = None) -> Self:
        """Read the text of a domain file, or raise DomainError; ``change`` is made to what it says first."""
        try:
            content = tomllib.loads(text)
            check_filled(content)
            if change is not None:
                change(content)
            check_chosen(content)
            declared = cls.model_validate(content)
            check_defaults(declared.features)
            return declared
        except RecursionError:
            raise DomainError("the domain file is nested too deeply.") from None
        except tomllib.TOMLDecodeError as error:
            raise DomainError(f"the domain file is not valid TOML: {explained(error, text)}.") from None
        except ValidationError as error:
            kinds = (*get_args(get_args(Feature)[0]), *get_args(get_args(Label)[0]))
            parts = (Dialect, Interaction, PublicationTexts, Contact, RangeChoice)
            models: tuple[type[BaseModel], ...] = (cls, *parts, *kinds)
            keys = {key for model in models for key in model.model_fields}
            raise error_in_file(error, content, keys) from None
        except ValueError as error:
            if isinstance(error, DomainError):
                raise
            raise DomainError("the domain file has a number with too many digits.") from None

    def to_toml(self) -> str:
        """The domain file that declares this; :meth:`from_toml` reads it back."""
        keys = ("norm", "person", "rows_per_person", "ignore")
        first = {key: value for key in keys if (value := getattr(self, key))}
        parts = [f"{key} = {toml_value(value)}\n" for key, value in first.items()]
        if self.table != PLAIN:
            parts.append(f"[table]\n{toml_lines(self.table)}")
        parts += [f"[[features]]\n{toml_lines(feature)}" for feature in self.features]
        parts += [f"[[interactions]]\n{toml_lines(one)}" for one in self.interactions]
        parts.append(f"[label]\n{toml_lines(self.label)}")
        if self.missing_words != self.table.missing_words:
            parts.insert(0, f"missing_words = {toml_value(self.missing_words)}\n")
        parts += [f"[[choices]]\n{toml_lines(one)}" for one in self.choices]
        if self.publication is not None:
            parts.append(f"[publication]\n{toml_lines(self.publication)}")
        return "\n".join(parts)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the domain file, whole or not at all; :meth:`load` reads it back.

        A file that exists is replaced only with ``overwrite=True``: it may have comments, which are lost.
        """
        with atomic_write(Path(path), overwrite=overwrite) as file:
            file.write(self.to_toml())

    def check(
        self,
        table: Any,
        *,
        identifier: str | None = None,
        sample_weight: str | None = None,
        max_weight: float = 1.0,
        library: LibraryName | None = None,
    ) -> Any:
        """List everything in a table that does not fit the domain, as ``expost check --problems`` does.

        All of it is found that a fit would refuse, and numbers beyond their bounds, which a fit clips.

        Parameters
        ----------
        table
            A data frame of any library with the outcome in it, a mapping of columns, a Dask frame, or files
            as in :func:`expost.scan`.
        identifier
            A column by which you know the records.
        sample_weight, max_weight
            The column of weights, where there is one, and the largest weight.
        library
            The library of the list: ``"pandas"``, ``"polars"``, ``"pyarrow"``, ``"modin"`` or ``"cudf"``. By
            default that of the table; pandas where it is no frame.

        Returns
        -------
        frame
            A row for each problem: ``PRIVATE_file``, which is empty for a frame; ``record``, counted from 1,
            or 0 where a whole column or file has the problem; the identifier, if one was named; ``column``,
            ``problem`` and ``value``. It has no rows if the table fits.

        Privacy
        -------
        Private: it quotes cells. Correct the table by it, and not the domain: what is declared is public, and
        must be known without the table.

        Examples
        --------
        >>> from expost import ClassLabel, Domain, Number
        >>> age = Number(name="age", low=0.0, high=120.0)
        >>> domain = Domain(features=(age,), label=ClassLabel(name="ill", classes=("no", "yes")))
        >>> found = domain.check({"age": ["40", "forty"], "ill": ["no", "Yes"]})
        >>> found[["record", "column", "value"]].values.tolist()
        [[2, 'age', 'forty'], [2, 'ill', 'Yes']]
        >>> found["problem"][1]
        'differs from a declared value only in case or blanks'
        """
        from expost.data.check import problem_table

        columns = {"weight": sample_weight, "max_weight": max_weight, "person": self.person}
        return problem_table(table, self.checked, self.table, identifier, library, **columns)

    def _summary(self) -> Summary:
        """What is declared, for a terminal and for a notebook; long lists are cut."""
        rows: list[tuple[str, str, str]] = [
            (part.name, part.kind, shorten(part.values, _LONGEST_LIST, placeholder=" …"))
            for part in self.features[:_MOST_FEATURES]
        ]
        if len(self.features) > _MOST_FEATURES:
            rows.append((f"and {len(self.features) - _MOST_FEATURES:,} more", "", ""))
        rows += [(one.name, "interaction", "") for one in self.interactions[:_MOST_FEATURES]]
        notes = (
            f"outcome: {self.label.name} ({self.label.values})",
            f"{len(self.column_names)} encoded columns, rows of norm ≤ {self.row_norm:g}",
            *([] if self.person is None else [f"people: rows with the same {self.person}"]),
        )
        return Summary("Domain (public, declared)", rows, ("feature", "kind", "values"), notes)
