// Long lists of numbers travel as the bytes of doubles, in base 64: half as long as digits, and exact.

const doubles = (text) => {
  const letters = atob(text);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return Array.from(new Float64Array(bytes.buffer));
};

const rows = ({ width, doubles: text }) => {
  const flat = doubles(text);
  return Array.from({ length: flat.length / width }, (_, i) => flat.slice(i * width, (i + 1) * width));
};

// A Hessian's eigenvalues, lowered by a margin and by what rounding may have moved them, or raised if it is negative.
export const moved = (values, margin, drift) =>
  values.map((value) => value - margin - Math.sign(margin) * drift * Math.abs(value - margin));

// The page's data with every list of numbers as such.
export function unpacked(numbers) {
  return {
    ...numbers,
    publications: numbers.publications.map((publication) => {
      const [spectra, spectrum] = [publication.spectra.map(doubles), doubles(publication.spectrum)];
      const valuesOf = ({ values, margin }) =>
        margin === undefined ? spectra[values] : moved(spectrum, margin, publication.rounding.curvature);
      const pencil = (packed) => (packed === null ? null : { ...packed, values: valuesOf(packed) });
      const known = (set) => set && { ...set, lines: rows({ width: 7, doubles: set.lines }) };
      const scoped = (level) => ({
        ...level,
        people: known(level.people),
        remembered: known(level.remembered),
        forgotten: level.forgotten && rows({ width: 3, doubles: level.forgotten }),
        public: pencil(level.public),
        adaptive: pencil(level.adaptive),
        upper: pencil(level.upper),
      });
      return {
        ...publication,
        bases: publication.bases.map(rows),
        spectrum,
        levels: publication.levels.map(({ fixed, every }) => ({ fixed: scoped(fixed), every: scoped(every) })),
      };
    }),
  };
}
