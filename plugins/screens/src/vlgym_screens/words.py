"""Words of the apps: six domains, names of people, and codes. All are drawn from the episode's generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Draws:
    """Draws from an episode's generator.

    Args:
        rng: the generator; it is the only source of chance.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def number(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`; both belong to it."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.rng.integers(len(items)))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items in a random order, all of them where there are fewer."""
        return [items[int(at)] for at in self.rng.permutation(len(items))[:count]]

    def people(self, count: int) -> list[str]:
        """Return different names of people."""
        order = self.sample(range(len(FIRST) * len(LAST)), count)
        return [f"{FIRST[at % len(FIRST)]} {LAST[at // len(FIRST)]}" for at in order]

    def code(self) -> str:
        """Return four signs that are not mistaken for one another."""
        at = self.number(0, len(SIGNS) ** 4 - 1)
        return SIGNS[at % 24] + SIGNS[at // 24 % 24] + SIGNS[at // 576 % 24] + SIGNS[at // 13824]

    def time(self) -> str:
        return f"{self.number(7, 21):02d}:{5 * self.number(0, 11):02d}"

    def detail(self, domain: Domain) -> str:
        """Return the small print of a row, as the domain has it."""
        if domain.detail == "price":
            return f"{self.number(2, 480)}.{self.number(0, 9)}0"
        return f"{self.number(1, 28)} {self.pick(MONTHS)}" if domain.detail == "date" else self.time()


FIRST = (
    "Ada", "Amir", "Anna", "Bela", "Bruno", "Carla", "Chen", "Dora", "Elif", "Emil", "Fatou", "Felix", "Greta", "Hana",
    "Hugo", "Ines", "Ivan", "Jana", "Jonas", "Kaito", "Lena", "Luis", "Maja", "Marco", "Nadia", "Nils", "Olga", "Omar",
    "Paula", "Priya", "Rosa", "Ruben", "Sara", "Tariq", "Uma", "Vera", "Wanda", "Yara", "Yusuf", "Zoe",
)  # fmt: skip
LAST = (
    "Abbot", "Adler", "Bauer", "Berg", "Castro", "Cole", "Diaz", "Doyle", "Egger", "Falk", "Fox", "Garcia", "Haas",
    "Holm", "Ito", "Jensen", "Kaur", "Klein", "Lam", "Lopez", "Mori", "Moser", "Nagy", "Novak", "Okoye", "Olsen",
    "Park", "Perez", "Quist", "Reyes", "Rossi", "Sato", "Silva", "Tanaka", "Toth", "Urban", "Vogel", "Weber", "Yilmaz",
    "Zeman",
)  # fmt: skip
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SIGNS = "ACDEFHJKLMNPRTUVWXY34679"
CITIES = (
    "Lisbon", "Oslo", "Porto", "Quito", "Riga", "Turin", "Bergen", "Cairo", "Delhi", "Genoa", "Hanoi", "Izmir", "Kyoto",
    "Lima", "Malmo", "Nice", "Osaka", "Perth", "Seoul", "Tunis", "Utrecht", "Vienna", "Warsaw", "Zagreb",
)  # fmt: skip
QUALIFIERS = (
    "My", "All", "New", "Old", "Shared", "Private", "Recent", "Saved", "Open", "Closed", "Local", "Hidden", "Family",
    "Weekly", "Monthly", "Urgent", "Quiet", "Spring", "Summer", "Autumn", "Winter", "North", "South", "First", "Second",
    "Green", "Blue", "Red", "Silver", "Golden",
)  # fmt: skip
ICONS = ("star", "trash", "pen", "heart", "bell", "lock", "share", "flag")
"""Names of icons; `drawing` has a shape for each."""
HEADER_ICONS = ("search", "gear", "plus", "menu", "person", "home")
QUESTIONS = (
    ("Rate this app", "Do you like it so far?"),
    ("What is new", "This version has larger letters."),
    ("Stay informed", "Messages can be shown at once."),
    ("Tips", "Press a row to open it."),
    ("Offer of the week", "One month costs nothing."),
)
REFUSALS, CONSENTS = (
    ("Not now", "Later", "Close", "No thanks", "Skip"),
    ("Tell me more", "Yes, please", "Show me", "Go on"),
)
SAVES = ("Save", "Apply", "Confirm", "Done", "Update")


@dataclass(frozen=True)
class Domain:
    """Words of one kind of app.

    Attributes:
        apps: names of apps.
        screens: nouns that screens are named after.
        things: titles of rows; empty: people.
        detail: small print of a row: `time`, `date` or `price`.
        toggles, counts: labels of settings.
        choices: labels and options of settings.
        fields: labels of text fields.
        facts: labels of values that a detail page states.
    """

    apps: tuple[str, ...]
    screens: tuple[str, ...]
    things: tuple[str, ...]
    detail: str
    toggles: tuple[str, ...]
    counts: tuple[str, ...]
    choices: tuple[tuple[str, tuple[str, ...]], ...]
    fields: tuple[str, ...]
    facts: tuple[str, ...]


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split(", "))


def _domain(detail: str, apps: str, screens: str, things: str, toggles: str, counts: str, **more: Any) -> Domain:
    choices = tuple((label.replace("_", " "), _split(options)) for label, options in more["choices"].items())
    return Domain(
        _split(apps), _split(screens), _split(things) if things else (), detail, _split(toggles), _split(counts),
        choices,
        _split(more["fields"]), _split(more["facts"]),
    )  # fmt: skip


DOMAINS = {
    "mail": _domain(
        "time", "Pigeon, Postbox, Letterly, Quillmail", "inbox, drafts, letters, threads, archive, folders, outbox", "",
        "Show pictures, Group threads, Read receipts, Sound, Swipe to delete, Spell check, Send later, Large letters",
        "Lines of preview, Days to keep, Undo seconds, Letters a page",
        choices={
            "Signature": "None, Short, Full, Formal", "Sort by": "Date, Sender, Size, Subject",
            "Check mail": "Always, Hourly, Daily, Never",
        },
        fields="Display name, Reply address, Subject, Nickname", facts="Ticket, Order code, Room, Reference",
    ),
    "bank": _domain(
        "price", "Kontor, Silverbank, Mint House, Tallybank", "accounts, cards, payments, loans, bills, funds, limits",
        "Rent, Salary, Groceries, Insurance, Power bill, Bus pass, Phone bill, Gym, Pension, Water bill, Cinema, "
        "School fees, Pharmacy, Fuel, Bakery, Book club, Dentist, Garden shop, Car wash, Donation",
        "Face unlock, Pay abroad, Round up, Monthly report, Alerts, Hide balance, Quick pay, Card lock",
        "Daily transfers, Alert days, Cards shown, Saving goals",
        choices={
            "Card colour": "Black, White, Green, Blue", "Statement": "Paper, Online, Both, None",
            "Currency": "Euro, Dollar, Yen, Pound",
        },
        fields="Payee, Purpose, Holder, Branch", facts="Account code, Approval, Branch code, Card code",
    ),
    "shop": _domain(
        "price", "Basketry, Corner, Cartwheel, Marketta", "offers, orders, lists, brands, returns, gifts, carts",
        "Oat milk, Rye bread, Green tea, Lamp, Wool socks, Notebook, Headphones, Backpack, Tent, Raincoat, Tea pot, "
        "Olive oil, Candle, Clock, Blanket, Bicycle bell, Pencils, Mirror, Toaster, Umbrella",
        "Gift wrap, Express, Price alerts, Save cart, Reviews, Coupons, Large pictures, Pick up",
        "Pieces, Gift cards, Boxes, Bags",
        choices={
            "Delivery": "Home, Shop, Locker, Office", "Size": "Small, Medium, Large, Giant",
            "Pay by": "Card, Invoice, Cash, Points",
        },
        fields="City, Street, Recipient, Coupon", facts="Order code, Parcel, Shelf, Voucher",
    ),
    "calendar": _domain(
        "time", "Daybook, Almanac, Weekly, Agenda", "meetings, birthdays, tasks, plans, reminders, trips, notes",
        "Choir, Team lunch, Dentist, Yoga, Parents evening, Book club, Football, Piano lesson, Budget talk, Haircut, "
        "Car check, Picnic, Interview, Library, Swimming, Board game night, Garden day, Concert, Flu shot, Market",
        "Week numbers, Holidays, Sound, Shared view, Travel time, Moon phases, Dim past days, Snooze",
        "Days shown, Alarm repeats, Weeks ahead, Guests",
        choices={
            "First day": "Monday, Saturday, Sunday, Friday", "Repeat": "Never, Daily, Weekly, Yearly",
            "View": "Day, Week, Month, List",
        },
        fields="Title, Place, Guest, Note", facts="Room, Dial-in, Seat, Door code",
    ),
    "clinic": _domain(
        "date", "Welldesk, Carepoint, Medika, Healthline", "visits, results, doctors, letters, vaccines, bills, wards",
        "",
        "Reminders, Share results, Night mode, Call back, Video visits, Large letters, Family access, Newsletter",
        "Doses, Refills, Visitors, Pain level",
        choices={
            "Language": "English, Polish, Turkish, Arabic", "Time of day": "Morning, Noon, Evening, Night",
            "Contact": "Letter, Phone, Message, None",
        },
        fields="Pharmacy, Allergy, Contact name, City", facts="Sample, Case, Ward code, Prescription",
    ),
    "travel": _domain(
        "date", "Wayfare, Compassly, Trainspotter, Northbound", "trips, tickets, hotels, routes, seats, offers, passes",
        ", ".join(CITIES),
        "Window seat, Late check-out, Breakfast, Seat alerts, Eco routes, Fast lane, Pets, Offline maps",
        "Travellers, Bags, Nights, Rooms",
        choices={
            "Class": "First, Second, Sleeper, Quiet", "Meal": "None, Vegan, Fish, Kosher",
            "Fare": "Saver, Basic, Flex, Plus",
        },
        fields="From, To, Traveller, Hotel", facts="Booking, Gate code, Seat code, Voucher",
    ),
}  # fmt: skip
