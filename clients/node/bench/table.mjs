const WIDTHS = [52, 14, 14, 8, 9];

/**
 * One line of the table. `targets` holds at most one of `ratioAtLeast`, `ratioAtMost`, `atLeast` and
 * `atMost`; the ratio is measured over compared.
 */
export function row(figure, what, unit, { measured, compared, ...targets }) {
  return { figure, what: `${what}, ${unit}`, measured, compared, targets };
}

/** A figure that this machine cannot show. */
export function missing(figure, what, why) {
  return { figure, what: `${what}: ${why}`, targets: {} };
}

export function header() {
  const names = cells('figure', 'measured', 'compared', 'ratio', 'target', 'reached');
  return `${names}\n${'-'.repeat(names.length)}`;
}

export function line({ figure, what, measured, compared, targets }) {
  const ratio = compared === undefined ? undefined : measured / compared;
  const [[kind, bound] = []] = Object.entries(targets);
  const judged = kind?.startsWith('ratio') ? ratio : measured;
  const least = kind?.endsWith('Least');
  const reached = least ? judged >= bound : judged <= bound;
  return cells(
    `${figure.padEnd(5)}${what}`,
    number(measured),
    number(compared),
    number(ratio),
    kind ? `${least ? '>=' : '<='} ${bound}` : '',
    kind ? (reached ? 'yes' : 'NO') : '',
  );
}

function cells(first, ...others) {
  const numeric = others.slice(0, -1).map((text, i) => text.padStart(WIDTHS[i + 1]));
  return [first.padEnd(WIDTHS[0]), ...numeric, ` ${others.at(-1)}`].join(' ');
}

function number(value) {
  if (value === undefined) return '';
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : 2;
  return value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
