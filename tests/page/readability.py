"""How hard English is to read: the Flesch–Kincaid grade, from sentences, words and syllables."""

import re

VOWELS = "aeiouy"
# Words whose syllables the rules below do not find.
KNOWN = {
    "people": 2, "someone": 2, "something": 2, "everyone": 3, "anyone": 3, "whoever": 3, "somewhere": 2,
    "before": 2, "beforehand": 3, "therefore": 2, "else": 1, "science": 2, "idea": 3, "being": 2, "doing": 2,
    "real": 1, "really": 2, "area": 3, "reliable": 4, "create": 2, "created": 3, "million": 2,
    "whole": 1, "used": 1, "made": 1, "does": 1, "file": 1, "line": 1, "csv": 3, "pdf": 3, "javascript": 3,
    "semicolons": 4, "useful": 2, "offline": 2, "sometimes": 2, "themselves": 2, "record's": 2, "guesses": 2,
}  # fmt: skip


def syllables(word):
    """The syllables of a word, by its groups of vowels; a silent e does not count."""
    word = word.lower().replace("’", "'")
    if word in KNOWN:
        return KNOWN[word]
    bare = re.sub(r"'(s|t|re|ll|ve)$", "", word)
    bare = re.sub(r"[^a-z]", "", bare)
    count = len(re.findall(rf"[{VOWELS}]+", bare))
    silent = bare.endswith("e") and not bare.endswith("le")
    if silent or (not re.search(r"[^aeiouy]les$", bare) and re.search(r"[^aeiouytdsxz]es$", bare)):
        count -= 1
    if re.search(r"[^aeioutdy]ed$", bare):
        count -= 1
    return max(count, 1)


def grade(text):
    r"""The Flesch–Kincaid grade: 0.39 words per sentence + 11.8 syllables per word - 15.59.

    A sentence ends with a point, a question mark or an exclamation mark. Lines without one, such as headings
    and names of buttons, do not count: they would make a text look easier than it is. A number counts as one
    word of one syllable, as it is looked at and not spelled out.
    """
    whole = [line for line in text.splitlines() if re.search(r"[.?!]['’”]?\s*$", line)]
    sentences = [one for line in whole for one in re.split(r"[.?!](?=\W|$)", line) if re.search(r"\w", one)]
    words = [word for one in sentences for word in re.findall(r"[\w’'-]+", one)]
    heard = sum(syllables(word) if re.search(r"[A-Za-z]", word) else 1 for word in words)
    return 0.39 * len(words) / len(sentences) + 11.8 * heard / len(words) - 15.59
