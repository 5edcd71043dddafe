// cron.js - the usual cron expressions in words. Others have none: the expression itself says when.

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = "January February March April May June July August September October November December".split(" ");

const two = (n) => String(n).padStart(2, "0");
const and = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`);
const ordinal = (n) => n + ((n % 100 > 10 && n % 100 < 14) || n % 10 > 3 ? "th" : ["th", "st", "nd", "rd"][n % 10]);

// The numbers of a list such as `1,15` or `MON,FRI`; null: it is something else.
function numbers(text, names = [], first = 0) {
  const list = text.split(",").map((word) => {
    const at = names.findIndex((name) => name.slice(0, 3).toUpperCase() === word.toUpperCase());
    return at >= 0 ? at + first : /^\d{1,2}$/.test(word) ? Number(word) : NaN;
  });
  return list.some(Number.isNaN) ? null : list;
}

// Of `*` and of `*/n`, where n divides `whole`, the n; else nothing.
function step(text, whole) {
  const n = Number(text === "*" ? 1 : /^\*\/(\d{1,2})$/.exec(text)?.[1]);
  return n > 0 && whole % n === 0 ? n : 0;
}

function weekdays(text) {
  const range = numbers(text.replace("-", ","), DAYS);
  if (!range) return null;
  const days = range.map((n) => DAYS[n % 7]);
  return text.includes("-") ? (days.length === 2 ? days.join(" to ") : null) : and(days);
}

// On which days; null: it takes an expression to say it.
function daysOf(day, month, weekday) {
  if (month === "*" && day === "*") return weekday === "*" ? "each day" : weekdays(weekday);
  const days = weekday === "*" && numbers(day);
  if (!days || days.length > 3) return null;
  if (month === "*") return `on the ${and(days.map(ordinal))}`;
  const months = numbers(month, MONTHS, 1);
  return months && months.length * days.length === 1 ? `on ${days[0]} ${MONTHS[months[0] - 1]}` : null;
}

export function words(expression) {
  const [minute, hour, ...rest] = expression.trim().split(/\s+/);
  const on = rest.length === 3 ? daysOf(...rest) : null;
  if (on === null) return "";
  const minutes = numbers(minute);
  const hours = numbers(hour);
  if (minutes?.length === 1 && hours && hours.length <= 3)
    return `${on} at ${and(hours.map((h) => `${two(h)}:${two(minutes[0])}`))}`;
  const often = on === "each day" ? "" : `${on}, `;
  const eachHours = step(hour, 24);
  const everyMinutes = hour === "*" ? step(minute, 60) : 0;
  if (minutes?.length === 1 && eachHours)
    return `${often}at minute ${minutes[0]} of each ${eachHours > 1 ? `${ordinal(eachHours)} ` : ""}hour`;
  if (everyMinutes) return `${often}every ${everyMinutes > 1 ? `${everyMinutes} min` : "minute"}`;
  return "";
}
