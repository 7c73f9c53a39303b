"""Every sentence of the page: the same in each language, all of them used, and plain to read."""

import re
from importlib.resources import files

import kidney
import pytest
import readability

import hatch_build
from expost.exceptions import ParameterError
from expost.page import render
from expost.page.assembly import modules
from expost.page.introduction import LANGUAGES, Language

PAGE = files("expost.page")
ENGLISH = Language.of("en").sentences
# Read by experts only.
FOR_EXPERTS = {"experts", "formulas"}
# What is filled in where the reading level is measured.
FILLED = {
    "publisher": "Norrdal Clinic",
    "purpose": "helps doctors see early whose kidneys will get worse",
    "population": "adults seen at its Kidney Centre",
    "reply": "We answer within two weeks.",
    "title": "Age",
    "titles": "Age",
    "names": "age, sex",
    "values": "Age 58 years, Sex Female",
    "contact": "Norrdal Clinic",
    "rare": "about 1 case in a million",
    "unit": "years",
    "reason": "Please answer yes or no.",
    "outcome": "Ill",
    "column": "age",
    "cell": "x",
    "words": "helps doctors",
}


def pairs(sentences):
    return {f"{part}.{name}": text for part, named in sentences.items() for name, text in named.items()}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_every_sentence(code):
    ours, theirs = pairs(ENGLISH), pairs(Language.of(code).sentences)
    assert list(theirs) == list(ours)
    for key, text in theirs.items():
        assert text.strip() == text or key == "page.and", key
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", ours[key])), key
        assert text.count("**") == ours[key].count("**"), key
        assert text.count("**") % 2 == 0, key
    assert len(theirs["page.months"].split()) == 12


# What is written alike in English, and words that would give away a sentence that was not translated.
SAME = {
    "de": {"page.entry", "page.slashed", "form.titled", "form.card", "form.relative"},
    "fr": {"page.day", "label.questions", "form.card", "file.column_question"},
    "es": {"page.entry", "form.no", "form.card", "experts.member_no"},
}
FORMULAS = {f"formulas.{name}" for name in ("second", "third", "total", "together_total", "wallet_total")}


@pytest.mark.parametrize("code", SAME)
def test_no_sentence_is_still_english(code):
    theirs = pairs(Language.of(code).sentences)
    same = {key for key, text in pairs(ENGLISH).items() if theirs[key] == text}
    assert same == FORMULAS | SAME[code]
    assert not re.search(r"\b(the|and|of|you|your|with)\b", " ".join(theirs.values()))


def test_no_package_is_built_with_a_sentence_missing(tmp_path):
    folder = tmp_path / hatch_build.LANGUAGES
    folder.mkdir(parents=True)
    for code in LANGUAGES:
        (folder / f"{code}.toml").write_text(
            (PAGE / "languages" / f"{code}.toml").read_text("utf-8"), "utf-8"
        )
    hatch_build.check_languages(tmp_path)
    (folder / "fr.toml").write_text(
        (folder / "fr.toml").read_text("utf-8").replace("\nenter = ", "\nenters = "), "utf-8"
    )
    with pytest.raises(ValueError, match="the language 'fr' must have the sentences of 'en'"):
        hatch_build.check_languages(tmp_path)


def test_every_language_has_its_typography():
    """Blanks that do not break before signs and units, quotes of the language, and nobody called by a sex."""
    french, spanish, german = (
        " ".join(pairs(Language.of(code).sentences).values()) for code in ("fr", "es", "de")
    )
    assert not re.search(r"[^\u00a0][:;?!%»]|«[^\u00a0]", french.replace("50:50", ""))
    assert not re.search(r"[“”\"]", french + spanish)
    assert spanish.count("?") == spanish.count("¿")
    for text in (french, spanish, german):
        assert "{n}%" not in text
    assert not re.search(
        r"\b(tu|toi|ton|tes|vosotros|tú|dein\w*)\b", french + spanish + german, re.IGNORECASE
    )


def test_days_and_numbers_follow_the_language():
    days = {
        code: (Language.of(code).day("2026-06-01"), Language.of(code).day("2026-06-03")) for code in LANGUAGES
    }
    assert days == {
        "en": ("1 June 2026", "3 June 2026"),
        "de": ("1. Juni 2026", "3. Juni 2026"),
        "fr": ("1er juin 2026", "3 juin 2026"),
        "es": ("1 de junio de 2026", "3 de junio de 2026"),
    }
    assert {code: Language.of(code).say("page.percent", n=5) for code in ("en", "fr")} == {
        "en": "5%",
        "fr": "5\u00a0%",
    }


def test_every_sentence_is_used():
    """A key stands in the template, the scripts or the opening words, whole or put together."""
    code = "".join((PAGE / "static" / f"{name}.js").read_text(encoding="utf-8") for name in modules())
    code += (PAGE / "templates" / "report.html").read_text(encoding="utf-8")
    code += (PAGE / "introduction.py").read_text(encoding="utf-8")
    made_up = re.compile(
        r"answer\.(picture|rare|open|forgotten|\w+_pill)|experts\.(kind|beside|member|noise|row)_|_several$|form\.clipped_"
        r"|label\.(guess|protection)_|answer\.(change|fix|go_on|enter)$|lead\.(publisher|anonymous)"
    )
    unused = [
        key
        for key in pairs(ENGLISH)
        if key not in code and f'"{key.split(".")[1]}"' not in code and not made_up.search(key)
    ]
    assert unused == []


def test_people_read_no_word_of_experts():
    plain = " ".join(text for key, text in pairs(ENGLISH).items() if key.split(".")[0] not in FOR_EXPERTS)
    assert not re.search(
        r"[ε-ω∞]|\b(epsilon|delta|log|Hessian|loss|differential|noise scale|logistic)\b", plain
    )


def test_the_counter_of_syllables_knows_these():
    words = {
        "noise": 1, "model": 2, "published": 2, "guesses": 2, "limited": 3, "record": 2, "computer": 3,
        "people": 2, "values": 2, "little": 2, "changed": 1, "privacy": 3, "strangers": 2, "released": 2,
        "average": 3, "promise": 2, "promises": 3, "makes": 1, "houses": 2,
    }  # fmt: skip
    found = {word: readability.syllables(word) for word in words}
    wrong = {word: (found[word], count) for word, count in words.items() if found[word] != count}
    assert wrong == {}


def test_the_counter_agrees_with_texts_of_known_grade():
    """Hand-counted: 14 words, 1 sentence, 14 syllables; and a sentence of long words."""
    easy = "The cat sat on the mat and the dog lay on the big red rug."
    assert readability.grade(easy) == pytest.approx(0.39 * 15 + 11.8 - 15.59)
    hard = "Institutional considerations necessitate extraordinarily comprehensive documentation."
    assert readability.grade(hard) > 25.0


def test_the_body_is_read_at_grade_eight_or_below():
    """Flesch–Kincaid over all English sentences that are no details for experts."""
    texts = {}
    for part, named in ENGLISH.items():
        if part not in FOR_EXPERTS:
            filled = [
                re.sub(r"\{(\w+)\}", lambda hole: FILLED.get(hole[1], "53"), text).replace("**", "")
                for key, text in named.items()
                if (part, key) != ("page", "months")
            ]
            texts[part] = "\n".join(filled)
    assert readability.grade("\n".join(texts.values())) <= 8.0
    for part in ("page", "lead", "answer", "timeline", "form", "file", "meaning", "actions", "footer"):
        assert readability.grade(texts[part]) <= 8.0, part


@pytest.mark.long
def test_the_page_as_it_is_read_is_at_grade_eight_or_below(open_page):
    visit = open_page(kidney.published())
    visit.page.evaluate("document.getElementById('experts').remove()")
    visit.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert readability.grade(visit.page.locator("body").inner_text()) <= 8.0


def test_an_unknown_language_is_refused():
    with pytest.raises(ParameterError, match="`language` must be one of en, de, fr, es"):
        render([kidney.published()], language="it")


def test_what_is_filled_in_is_no_markup():
    """Neither stars nor tags in a text make anything bold or an element."""
    spoken = Language.of("en")
    said = spoken.rich("answer.row_status", line="**<b>x</b>**{line}")
    assert said == "From line **&lt;b&gt;x&lt;/b&gt;**{line} of your file."
    assert spoken.rich("answer.headline", n=5) == (
        "With the model, at most <strong>5 of 100</strong> guesses would be right."
    )
