"""The base class of every pydantic model."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A frozen model with exactly the declared fields, finite numbers, and no conversion between types."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )

    def __dir__(self) -> Iterable[str]:
        """The names for tab completion, without pydantic's own."""
        return [name for name in super().__dir__() if name not in _OF_PYDANTIC]


_OF_PYDANTIC = frozenset(
    name for name in (*dir(BaseModel), "model_config", "model_fields_set") if not name.startswith("__")
)
