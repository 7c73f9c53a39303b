"""A new user gets from a table to the page with six commands."""

import re

from ward import patients, refused, run, write_csv

# What the user knows about the columns, written as the comments in the file say.
KNOWN = {
    "age": 'kind = "number"\nlow = 0.0\nhigh = 100.0',
    "ward": 'kind = "category"\ncategories = ["north", "south"]',
    "smoker": 'kind = "yes_no"',
    "ill": 'kind = "classes"\nclasses = ["no", "yes"]',
}


def filled(text):
    """Edit the skeleton as its comments say."""
    for name, words in KNOWN.items():
        text = re.sub(rf'(name = "{name}"\n)(?:(?:kind|low|high|classes) = .*\n)+', rf"\1{words}\n", text)
    return text


def test_six_commands_from_a_table_to_a_page(tmp_path, monkeypatch, remembered):
    monkeypatch.chdir(tmp_path)
    write_csv("table.csv", patients())
    write_csv("me.csv", patients(1))
    skeleton = run("init", "table.csv")
    assert skeleton.exit_code == 0
    assert "expost check domain.toml table.csv" in skeleton.stderr
    written = ("init", "table.csv", "-o", "domain.toml")
    assert "expost check domain.toml table.csv" in run(*written).stderr
    domain = tmp_path / "domain.toml"
    assert domain.read_text() == skeleton.stdout
    domain.write_text(filled(skeleton.stdout))
    assert refused(run(*written), "domain.toml exists")
    assert domain.read_text() == filled(skeleton.stdout)
    assert refused(run(*written[:-1], "table.csv", "--force"), "is an input of this command")
    commands = [
        "plan domain.toml --epsilon 1 --delta 1e-6 --report leverage",
        "fit domain.toml table.csv -o publication.json --report leverage",
        "bounds publication.json me.csv --member yes",
        "losses publication.json table.csv -o private-losses.csv",
        "page publication.json -o report.html",
    ]
    for command in commands:
        result = run(*command.split())
        assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"publication.json", "private-losses.csv", "report.html"} <= names
