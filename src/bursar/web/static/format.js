// Texts that several pages format in the same way.

/** A text as a sentence: with a capital letter, unless a file comes first, and a full stop. */
export const sentence = (text) => (text ? `${/^\S*[.\/]\S/.test(text) ? text[0] : text[0].toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}` : "");

/** An error of the server as sentences: what went wrong, and what to do. */
export const errorText = ({ message, fix }) => [message || "something went wrong", fix].filter(Boolean).map(sentence).join(" ");

/** Show a message in a notice, or hide the notice if there is no message. */
export function showNotice(notice, text, look = "good") {
  notice.textContent = text;
  notice.className = `notice ${look}`;
  notice.hidden = !text;
}

/** An amount of money, which is a number of smallest units: with two decimals, or more if it is a small fraction. */
export function moneyText(units, { unit, currency }) {
  const amount = units * Number(unit);
  const digits = decimalsOf(unit);
  const shown = Math.abs(amount) < 0.1 ? digits : Math.min(2, digits);
  return `${currency}${amount.toLocaleString("en", { minimumFractionDigits: shown, maximumFractionDigits: shown })}`;
}

/** The number of decimals of a number. */
export function decimalsOf(number) {
  const [mantissa, exponent] = String(number).split("e-");
  return (mantissa.split(".")[1]?.length ?? 0) + Number(exponent ?? 0);
}
