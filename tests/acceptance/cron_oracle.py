"""When a cron expression ticks, by a port of the loop of Debian's cron 3.0pl1, minute by minute,
over Python's zoneinfo. The slow and obvious way, to compare the fast one with."""
import calendar
import datetime
import random
import re

RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 7)}
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
THREE_HOURS = 3 * 60
EPOCH = datetime.datetime(1970, 1, 1)


def value_of(field, text):
    names = {"month": MONTHS, "weekday": DAYS}.get(field, [])
    if text.lower() in names:
        return names.index(text.lower()) + RANGES[field][0]
    return int(text)


class Expression:
    """Five fields."""

    def __init__(self, text):
        words = text.split()
        self.sets, self.special = {}, set()
        for field, word in zip(RANGES, words):
            self.sets[field] = set()
            for item in word.split(","):
                self._take(field, item)
        if 7 in self.sets["weekday"]:
            self.sets["weekday"].add(0)
        self.both = words[2].startswith("*") or words[4].startswith("*")
        self.wild = words[0].startswith("*") or words[1].startswith("*")
        self.days = {}

    def _take(self, field, item):
        low, high = RANGES[field]
        if field == "day" and item.upper() in ("L", "LW"):
            self.special.add(item.upper())
            return
        found = field == "weekday" and re.fullmatch(r"(\w+?)(L|#\d)", item, re.I)
        if found:
            self.special.add((value_of(field, found[1]) % 7, found[2].upper()))
            return
        span, _, step = item.partition("/")
        if span != "*":
            first, dash, last = span.partition("-")
            low = value_of(field, first)
            high = value_of(field, last) if dash else high if step else low
        self.sets[field].update(range(low, high + 1, int(step or 1)))

    def _day(self, number):
        date = datetime.date(1970, 1, 1) + datetime.timedelta(days=number)
        last = calendar.monthrange(date.year, date.month)[1]
        weekday = date.isoweekday() % 7
        workday = next(d for d in range(last, 0, -1)
                       if datetime.date(date.year, date.month, d).isoweekday() < 6)
        by_month = (date.day in self.sets["day"] or "L" in self.special and date.day == last or
                    "LW" in self.special and date.day == workday)
        by_week = (weekday in self.sets["weekday"] or
                   (weekday, "L") in self.special and date.day + 7 > last or
                   (weekday, f"#{(date.day + 6) // 7}") in self.special)
        return date.month in self.sets["month"] and (
            by_month and by_week if self.both else by_month or by_week)

    def matches(self, minute):
        """A minute of a local clock since 1970."""
        day, of_day = divmod(minute, 1440)
        if of_day // 60 not in self.sets["hour"] or of_day % 60 not in self.sets["minute"]:
            return False
        if day not in self.days:
            self.days[day] = self._day(day)
        return self.days[day]


def offset_min(zone, minute):
    at = datetime.datetime.fromtimestamp(minute * 60, zone)
    return int(at.utcoffset().total_seconds()) // 60


def loop(zone, first, last):
    """What cron looks for: (minute now, local minute, jobs with *, jobs without), from first to last,
    in minutes since 1970."""
    virtual = first - 1 + offset_min(zone, first - 1)
    for now in range(first, last + 1):
        running = now + offset_min(zone, now)
        difference = running - virtual
        if difference == 1:
            virtual = running
            yield now, running, True, True
        elif difference > THREE_HOURS or difference <= -THREE_HOURS:
            virtual = running
            yield now, running, True, True
        elif difference > 1:
            # Of a small difference it makes no other one: no zone jumps by 2 to 4 minutes.
            yield now, running, True, False
            while virtual < running:
                virtual += 1
                yield now, virtual, False, True
        else:
            yield now, running, True, False


def ticks(expression, steps):
    found = []
    for now, local, wild, fixed in steps:
        if (wild if expression.wild else fixed) and expression.matches(local):
            if not found or found[-1] != now:
                found.append(now)
    return found


def changes(zone, year, n):
    """The first n changes of the offset from the beginning of a year on, in minutes."""
    at = int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp()) // 60
    found = []
    while len(found) < n:
        low, at = at, at + 1440
        if offset_min(zone, low) != offset_min(zone, at):
            high = at
            while high - low > 1:
                middle = (low + high) // 2
                if offset_min(zone, middle) == offset_min(zone, low):
                    low = middle
                else:
                    high = middle
            found.append(high)
    return found


def random_item(rng, field):
    low, high = RANGES[field]
    names = {"month": MONTHS, "weekday": DAYS}.get(field)
    one = lambda: rng.randint(low, high)
    kind = rng.random()
    if field == "day" and kind < 0.15:
        return rng.choice(["L", "LW", "l"])
    if field == "weekday" and kind < 0.25:
        return rng.choice([f"{one()}L", f"{one()}#{rng.randint(1, 5)}", "friL", "Mon#1"])
    if names and kind < 0.4:
        return rng.choice(names).upper()
    if kind < 0.55:
        return str(one())
    a, b = sorted((one(), one()))
    step = lambda n: rng.randint(1, max(1, min(n, (high - low) // 2)))  # of n values
    return rng.choice([f"{a}-{b}", f"{a}-{b}/{step(b - a + 1)}", f"{a}/{step(high - a + 1)}",
                       f"*/{step(high - low)}", f"{a}-{a}/1"])


def random_expression(rng):
    """Mostly of the hours in which clocks change, so that it has something to show."""
    words = []
    for field in RANGES:
        usual = {"minute": 0.1, "hour": 0.25, "day": 0.7, "month": 0.85, "weekday": 0.7}[field]
        if rng.random() < usual:
            words.append("*")
        elif field == "hour" and rng.random() < 0.6:
            words.append(rng.choice(["0", "1", "2", "3", "0-3", "1,2", "23", "22-23", "0/2", "*/3"]))
        else:
            words.append(",".join(random_item(rng, field) for _ in range(rng.choice([1, 1, 1, 2, 3]))))
    text = " ".join(words)
    return text if has_its_days(text) else random_expression(rng)


def has_its_days(text):
    """Whether a month of it has each of its days; else it is refused."""
    last = max({2: 29, 4: 30, 6: 30, 9: 30, 11: 30}.get(month, 31) for month in Expression(text).sets["month"])
    firsts = [item.split("-")[0].split("/")[0] for item in text.split()[2].split(",")]
    return all(int(first) <= last for first in firsts if first.isdigit())


def expressions(seed, n):
    rng = random.Random(seed)
    chosen = ["* * * * *", "0 * * * *", "*/30 2 * * *", "30 2 * * *", "0 0 * * *", "15 1 * * *",
              "30 0-3 * * *", "0 2 * * *", "59 23 L * *", "30 1 * * SUN", "0 2 25-31 * 0"]
    while len(chosen) < n:
        chosen.append(random_expression(rng))
    return chosen[:n]
