// The details: every number that was published, as a table.

import { element } from "./form.js";
import { capital, title } from "./odds.js";
import { centring, dot } from "./softmax.js";

const SCALES = {
  sigma: "noise of the model",
  sigma_gradient: "noise of the gradient",
  sigma_hessian: "noise of the Hessian",
  sigma_eigenvalue: "noise of the smallest eigenvalue",
  l2: "regularisation (λ)",
  epsilon: "promise ε",
  delta: "promise δ",
};

function table(caption, rows) {
  return element(
    "table",
    {},
    element("caption", { textContent: caption }),
    element(
      "tbody",
      {},
      ...rows.map(([name, ...values]) =>
        element(
          "tr",
          {},
          element("th", { scope: "row", textContent: name }),
          ...values.map((value) => element("td", { textContent: String(value) })),
        ),
      ),
    ),
  );
}

const parameters = (thing) => Object.entries(thing).map(([name, value]) => (name === "name" ? value : `${name} ${value}`)).join(", ");

const classWeights = (classes, weights) => classes.map((name, i) => `${name}: ${weights[i]}`).join(", ");

// One column, or one for each class: the coefficients of the classes sum to zero.
function coefficientTable(outcome, { loss, columns, coefficients }) {
  if (loss.name !== "softmax") {
    return table("Coefficients of the model", columns.map((name, i) => [name, coefficients[0][i]]));
  }
  const basis = centring(loss.classes);
  const rows = columns.map((name, i) => {
    const column = coefficients.map((predictor) => predictor[i]);
    return [name, ...basis.map((row) => dot(row, column).toPrecision(6))];
  });
  const made = table("Coefficients of the classes, to six digits; they sum to zero over the classes", rows);
  const cells = ["", ...outcome.classes].map((name) => element("th", { scope: "col", textContent: name }));
  made.querySelector("tbody").before(element("thead", {}, element("tr", {}, ...cells)));
  return element("div", { className: "wide" }, made);
}

export function showDetails(place, fields, publications) {
  place.append(
    ...publications.flatMap((publication) => {
      const { plan } = publication;
      const scales = Object.entries(SCALES).filter(
        ([key]) => plan[key] !== null && !(key === "delta" && plan.epsilon === null),
      );
      const facts = [
        ["loss", parameters(publication.loss)],
        ["largest length of a record", publication.norm],
        ...(publication.max_weight === null ? [] : [["largest sample weight", publication.max_weight]]),
        ...(publication.class_weight === null
          ? []
          : [["weights of the classes", classWeights(fields[publication.outcome].classes, publication.class_weight)]]),
        ...(publication.regularizer ? [["regulariser", parameters(publication.regularizer)]] : []),
        ...scales.map(([key, name]) => [name, plan[key]]),
        ...(plan.reduced ? [["the Hessian that was released", "the reduced one, of the features alone"]] : []),
        ["fingerprint of the file (SHA-256)", publication.sha256],
      ];
      return [
        ...(publications.length > 1 ? [element("h3", { textContent: capital(title(fields, publication)) })] : []),
        table("Scales and promise", facts),
        coefficientTable(fields[publication.outcome], publication),
      ];
    }),
  );
}
