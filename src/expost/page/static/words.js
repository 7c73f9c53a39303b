// What the publisher calls a row and everyone who was promised something; words of the page where nothing was declared.

import { language, say } from "./language.js";

const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

export function wordsOf(publications) {
  const ofPeople = publications.filter(({ plan }) => plan.unit === "person");
  // Words in another language do not complete a sentence in this one.
  const spoken = ofPeople.filter(({ texts }) => [null, undefined, language()].includes(texts.language));
  const declared = (name) => spoken.map(({ texts }) => texts[name]).find(Boolean);
  const row = declared("row_word") ?? say("form.row_word");
  return {
    row,
    rows: declared("row_words") ?? say("form.row_words"),
    Row: capital(row),
    everyone: ofPeople.length ? (declared("everyone") ?? say("form.every_person")) : say("form.everyone"),
  };
}
