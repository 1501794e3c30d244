"""The environment: a shopper's wish, a shop seen through a browser, and one purchase."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.rendering import fit_image
from vlgym.env.reset_options import one_of, whole_number
from vlgym.env.seeding import SPLITS
from vlgym.errors import UserError, check_choice
from vlgym.types import Image, Outcome

from .catalogue.build import CatalogueSource
from .catalogue.lookalikes import seed_of_split
from .catalogue.wishes import split_of_goal, split_range
from .oracle import missing_option, plan_action, suggest_search
from .reward import Score, load_tagger
from .services import Shop, ShopConfig, get_services
from .session import DONE, ITEM, RESULTS, SEARCH, Page, read_action

LONGEST_LIST = 4500  # characters of clickable elements that the text lists; the rest work unlisted
PLACEHOLDER = "words"  # stands for the words of a search where no ready-made one is listed
_LOOK = PromptTemplate(
    version=2,
    instructions=(
        "You are shopping in a web shop; the image shows the page in your browser. {task}\n"
        "search[words] works on the search page, with any words of your own. click[element] works for "
        "the elements listed, and on a product page for each option's value, spelled as in the image. "
        "Many products look alike: compare prices, and read the features. "
        "Choose the options that are asked for before you click buy now, which ends the shopping. "
        "You have {max_turns} turns.\n{format}"
    ),
    turn="{state}Legal actions: {actions}",
)


class WebShop(VLEnv):
    """WebShop: buy a product that meets an instruction, in a web shop.

    Goal: search, compare, choose options, and buy the product that the instruction describes, below
        its price limit.
    Observation: a screenshot of the shop's page in a headless Chromium, 672 x 896 pixels; the text
        holds the instruction and the kind of page, and lists the elements that can be clicked (in
        `-v1` without the values of options). Product names, prices, ratings, features and the
        chosen options are in the picture only.
    Actions: `search[words]` on the search page, any words; `click[element]` with an element of the
        page: article numbers (lower case), `next >`, `< prev`, `back to search`, `description`,
        `features`, `reviews`, option values, `buy now`. A ready-made search is listed in `-v0`
        only. Anything else, a search on a page without a search bar included, is an invalid turn
        that changes nothing.
    Reward: 0 until `buy now`; then r_type * (attributes met + options met + [price within limit]) /
        (attributes + options + 1), the published formula (see `vlgym_webshop.reward`), from 0 to 1;
        in `-v1` 1 where that is 1, else 0.
    Endings: terminated by the purchase; truncated after `max_turns` (50; the literature also uses 15 and 100).
    Success: the published formula gives 1.
    Info: `page`, `purchased`, `asin`, and after the purchase the sub-scores `attribute_score`,
        `option_score`, `type_score`, `price_score` (0 before); `score` is 100 times the formula.
    Splits: goals 0-499 are test, 500-1499 val, from 1500 train, as published. In the generated
        catalogue no two splits want the same product; in `-v1` no product is on sale in two splits.
        A seed of `vlgym.env.seeding.episode_seed` chooses its split; other seeds mean train;
        `split` overrides both.
    Catalogue: `-v0` has 1,000 products that differ in their texts; `-v1` has groups of twelve
        look-alikes that differ in price and features alone, and goals that one of a group meets.
    Oracle: exact; it knows the product that the instruction was written for. It searches for the
        telling words of the instruction where these list the product on the first page, else for its name.

    References: Yao et al., WebShop: Towards Scalable Real-World Web Interaction with Grounded
        Language Agents, NeurIPS 2022. VL-DAC, arXiv 2508.04280.

    Args:
        products: size of the generated catalogue, 100 to 1,000,000.
        catalogue_seed: another seed, another catalogue.
        data: folder of WebShop's own files; they replace the generated catalogue.
        split: `train`, `val` or `test`, instead of the seed's split.
        search_anywhere: accept `search[...]` on every page, as the published text environment does.
        nouns: noun tagger of the type score: `rules`, `spacy`, or `auto`: the model for WebShop's
            own files where it is installed, else the rule.
        lookalikes: generate groups of twelve products that differ in price and features, which only
            their pages show. Goals ask for both, within a price limit that half of them pass.
        suggest: list a ready-made search among the legal actions.
        options_in_text: list the values of options, which can be clicked in any case.
        partial_credit: pay a purchase that meets a part of the wish by the formula; else nothing.
        **kwargs: of `VLEnv`.

    Options of `reset`: `goal` (a number) chooses the goal; `split` its split; `level`, 0 to 3, how
        many options the wish names.

    Raises:
        UserError: a value is out of its range; at the first reset also: a part or file is missing.
    """

    prompt = PromptTemplate(
        version=1,
        instructions=(
            "You are shopping in a web shop; the image shows the page in your browser. {task}\n"
            "search[words] works on the search page, with any words of your own. click[element] works "
            "for the elements listed. "
            "Choose the options that are asked for before you click buy now, which ends the shopping. "
            "You have {max_turns} turns.\n{format}"
        ),
        turn="{state}Legal actions: {actions}",
    )
    reset_options: ClassVar = {
        "goal": whole_number(
            "the goal, of whatever split", 0, lambda env: env._count_goals() - 1,
            "a number from 0, below the catalogue's number of goals",
        ),
        "split": one_of("the split of the goal that is drawn", SPLITS),
    }  # fmt: skip

    wanted_options: int | None = None  # in the wish; None leaves the number to the draw
    level_arguments: ClassVar = tuple({"wanted_options": count} for count in range(4))

    def __init__(
        self,
        *,
        products: int = 1000,
        catalogue_seed: int = 0,
        data: str | None = None,
        split: str | None = None,
        search_anywhere: bool = False,
        nouns: str = "auto",
        lookalikes: bool = False,
        suggest: bool = True,
        options_in_text: bool = True,
        partial_credit: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("split", split, (None, *SPLITS))
        super().__init__(**kwargs)

        # Look-alikes would be known from other splits, so each split has a catalogue of its kind.
        source = CatalogueSource(products, catalogue_seed, data, bool(lookalikes))
        self._configs = dict.fromkeys(SPLITS, ShopConfig(source, nouns, search_anywhere))
        if lookalikes and data is None:
            for name, config in self._configs.items():
                own = replace(source, seed=seed_of_split(catalogue_seed, name))
                self._configs[name] = replace(config, source=own)
        self.config = self._configs[split or "train"]
        self.suggest, self.options_in_text = bool(suggest), bool(options_in_text)
        self.partial_credit = bool(partial_credit)
        if not self.options_in_text:
            self.prompt = _LOOK  # type: ignore[misc]  # elsewhere of the class
        self.split = split

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        split = options.get("split") or self.split or self.seed_split or "train"
        self.config = self._configs[split]
        number = options.get("goal")
        first, last = split_range(split, self._count_goals())
        if first == last and number is None:
            raise UserError(
                f"There is no goal in the split {split!r}: this catalogue has {last} goals; train begins at 1500."
            )

        # A number that is asked for may be of any split; its draw happens all the same.
        drawn = self._find_fitting(int(rng.integers(first, last)), first, last) if first < last else 0
        self.goal_number = drawn if number is None else number
        self.config = self._configs[split_of_goal(self.goal_number)]
        self.goal = self.shop.catalogue.goal(self.goal_number)
        self.page = Page()
        self._score: Score | None = None

    def _find_fitting(self, drawn: int, first: int, last: int) -> int:
        """Return the number of the next goal, from the drawn one on, with `wanted_options`."""
        wanted = self.wanted_options
        for number in (*range(drawn, last), *range(first, drawn)):
            if wanted is None or len(self.shop.catalogue.goal(number).options) == wanted:
                return number
        raise UserError(f"This catalogue has no goal with {self.wanted_options} options.")

    def resolve_arguments(self) -> dict[str, Any]:
        generated = self.config.source.data is None
        return {"nouns": load_tagger(self.config.nouns, generated=generated)[0]}

    def act(self, action: str) -> Outcome:
        kind, argument = read_action(action) or ("click", "")
        rules = self.shop.rules
        if kind == "search":
            self.page = Page(RESULTS, argument)
            return Outcome(feedback="searched")
        self.page = rules.after_click(self.page, argument)
        if self.page.kind != DONE:
            return Outcome(feedback=f"clicked {argument}")

        # The purchase pays and ends the episode.
        self._score = self.shop.judge(self.page, self.goal)
        paid = self._score.reward if self.partial_credit else float(self.success())
        return Outcome(paid, terminated=True, feedback="bought")

    def match_action(self, wanted: str) -> str | None:
        read, rules = read_action(wanted), self.shop.rules
        if read is None:
            return None
        kind, argument = read
        if kind == "search":
            accepted = rules.accepts_search(self.page)
        else:
            accepted = argument in rules.clickables(self.page)
        return f"{kind}[{argument}]" if accepted else None

    def legal_actions(self) -> list[str]:
        """Clickable elements of the page, option values with `options_in_text`; one search.

        With `suggest` the search has the instruction's telling words, else a word that finds nothing.
        """
        rules = self.shop.rules
        query = suggest_search(self.goal.instruction) if self.suggest else PLACEHOLDER
        actions = [f"search[{query}]"] if self.page.kind == SEARCH else []
        room = LONGEST_LIST
        for name in rules.clickables(self.page, options=self.options_in_text):
            room -= len(name) + len("click[], ")
            if room >= 0 or name == "buy now":
                actions.append(f"click[{name}]")
        return actions

    def image(self) -> Image:
        picture = get_services().photograph(self.config, self.goal_number, self.page)
        return fit_image(picture, self.image_size)

    def task(self) -> str:
        return f"Instruction: {self.goal.instruction}"

    def state_text(self) -> str:
        if self.page.kind == DONE:
            return "The order is complete. "
        if self.page.kind == RESULTS:
            return f"You are on the results page {self.page.number}. "
        name = {SEARCH: "search", ITEM: "product"}.get(self.page.kind, self.page.detail)
        return f"You are on the {name} page. "

    def success(self) -> bool:
        return self._score is not None and self._score.reward == 1.0

    def oracle(self) -> str | None:
        return plan_action(self.shop, self.goal, self.page)

    def think(self, action: str) -> str:
        kind, argument = read_action(action) or ("click", "")
        if kind == "search" and argument == suggest_search(self.goal.instruction):
            return "I search for what the instruction says."
        if kind == "search":
            return "I search for the product by its name."

        # A click goes to the product, to one of its options, to the purchase, or to another page.
        if argument == self.goal.asin.lower():
            return f"{argument} fits the instruction."
        if argument == "buy now":
            return "Product and options fit, so I buy."
        if self.page.kind == ITEM:
            product = self.shop.catalogue.product(self.page.asin)
            if argument == missing_option(product, self.goal, self.page):
                return f"The instruction asks for {argument}."
        return "The product is on another page."

    def score(self) -> float:
        return 100.0 * self._score.reward if self._score else 0.0

    def extra_info(self) -> dict[str, Any]:
        score = self._score or Score(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return {
            "page": self.page.kind, "asin": self.page.asin, "goal": self.goal_number,
            "purchased": self._score is not None, "attribute_score": score.attributes,
            "option_score": score.options, "type_score": score.type, "price_score": score.price,
        }  # fmt: skip

    def close(self) -> None:
        """Let go of the browser; the last environment of the process ends it."""
        get_services().leave(self)
        super().close()

    @property
    def shop(self) -> Shop:
        """The shop of this configuration, shared with the other environments of the process."""
        return get_services().shop(self.config)

    def url(self) -> str:
        """Return the address of the page, for any browser of this machine, until `close`."""
        return get_services().url(self.config, self.goal_number, self.page)

    def _count_goals(self) -> int:
        get_services().join(self)
        return self.shop.catalogue.goals
