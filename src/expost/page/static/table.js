// Reads a table as spreadsheets write it: commas, semicolons or tabs, quotes doubled inside quotes.

export const SEPARATORS = [";", "\t", ","];

// The rows of a text, each with the number of the line where it begins. Blanks around what is not quoted go, and so
// do empty lines.
export function splitTable(text, separator) {
  const rows = [];
  // A cell is blank until it has a letter: to look at all of it for every quote would take minutes.
  let [cells, cell, blank, quoted, wasQuoted, line, first] = [[], "", true, false, false, 1, 1];
  const finishCell = () => {
    cells.push(wasQuoted ? cell : cell.trim());
    [cell, blank, wasQuoted] = ["", true, false];
  };
  const finishRow = () => {
    finishCell();
    if (cells.some((one) => one !== "")) rows.push({ line: first, cells });
    cells = [];
  };
  for (let i = 0; i < text.length; i += 1) {
    const letter = text[i];
    if (letter === "\n") line += 1;
    if (quoted && letter === '"' && text[i + 1] === '"') {
      cell += letter;
      i += 1;
    } else if (letter === '"' && (quoted || blank)) {
      if (!quoted) cell = "";
      quoted = !quoted;
      wasQuoted = true;
    } else if (quoted) {
      cell += letter;
    } else if (letter === separator) {
      finishCell();
    } else if (letter === "\n") {
      finishRow();
      first = line;
    } else if (!wasQuoted && letter !== "\r") {
      cell += letter;
      blank &&= letter.trim() === "";
    }
  }
  finishRow();
  return rows;
}

// The text of a file's bytes: UTF-8, UTF-16 with its mark, or the Windows alphabet that old spreadsheets write; null
// where it is no text.
export function textOf(bytes) {
  const mark = [bytes[0], bytes[1]].join();
  let text;
  if (mark === "255,254") text = new TextDecoder("utf-16le").decode(bytes);
  else if (mark === "254,255") text = new TextDecoder("utf-16be").decode(bytes);
  else {
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      text = new TextDecoder("windows-1252").decode(bytes);
    }
  }
  return text.includes("\u0000") ? null : plainText(text);
}

// Without a byte order mark, and with one kind of line end.
export const plainText = (text) => text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
