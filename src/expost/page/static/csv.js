// Reads one line of a table as spreadsheets write it: commas, semicolons or tabs, quotes doubled inside quotes.

export function splitLine(line) {
  const separator = [",", ";", "\t"].find((candidate) => outsideQuotes(line).includes(candidate)) ?? ",";
  const cells = [];
  let cell = "";
  let quoted = false;
  let wasQuoted = false;
  const finish = () => {
    cells.push(wasQuoted ? cell : cell.trim());
    cell = "";
    wasQuoted = false;
  };
  for (let i = 0; i < line.length; i += 1) {
    const letter = line[i];
    if (quoted && letter === '"' && line[i + 1] === '"') {
      cell += letter;
      i += 1;
    } else if (letter === '"' && (quoted || cell.trim() === "")) {
      if (!quoted) cell = "";
      quoted = !quoted;
      wasQuoted = true;
    } else if (letter === separator && !quoted) {
      finish();
    } else if (!(wasQuoted && !quoted)) {
      cell += letter;
    }
  }
  finish();
  return cells;
}

const outsideQuotes = (line) => line.replace(/"[^"]*"/g, "");
