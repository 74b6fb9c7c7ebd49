"""What both faces share: how they are made, and what they check before they work."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from commonplace import Scope

from .adding import PROCEDURAL, add, add_procedure, said
from .building import build
from .calls import Compat, Unset, joined, top_ids
from .exceptions import NO_TYPE, ValidationError
from .llms import as_model
from .messages import to_turns
from .scopes import IDS, to_scope
from .setup import Setup
from .steps import Step

if TYPE_CHECKING:
    from commonplace import Memory as Core

SEARCHED = (
    *IDS, "limit", "top_k", "filters", "threshold", "rerank", "explain", "reference_date",
    "show_expired", "cursor",
)  # fmt: skip


class Face:
    """A memory of ours, reached by mem0's calls.

    Attributes:
        core: the memory of ours that it works on, opened when it is first asked for.
    """

    _awaits: ClassVar[bool]

    def __init__(
        self, config: object = None, *, compat: Compat = "auto", core: "Core | None" = None
    ) -> None:
        """Read a configuration: a dict, a `MemoryConfig`, or mem0's; None is all offline.

        Args:
            compat: `v1` or `v2` gives every call that era's defaults; `v2` also refuses what it
                refuses.
            core: an open memory to work on.

        Raises:
            ConfigurationError: it contradicts itself, or names what is not there.
        """
        self.config = config
        self._setup, self._opening = build(config, compat, core, awaits=self._awaits)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], *, compat: Compat = "auto") -> Self:
        """Make a memory from a dict, which is left as it is."""
        return cls(config_dict, compat=compat)

    @property
    def core(self) -> "Core":
        """The memory of ours, with everything that mem0 has no word for."""
        return self._opening.get()


def addition(
    setup: Setup,
    messages: Any,
    ids: Mapping[str, Any],
    filters: Mapping[str, Any] | None,
    *,
    metadata: Mapping[str, Any] | None,
    infer: bool | str | Unset,
    prompt: str | None,
    memory_type: str | None,
    timestamp: Any,
    expiration_date: Any,
    wait: bool,
    llm: Any = None,
) -> Step[dict[str, Any]]:
    """Check what `add` was given, and choose how it is done.

    Args:
        llm: in place of the configured model.

    Raises:
        ValidationError: nobody is named, or something cannot be remembered.
    """
    if isinstance(infer, str):  # before there was `infer`, the prompt stood in its place
        prompt = infer
        infer = True
    if memory_type is not None and memory_type != PROCEDURAL:
        raise ValidationError(
            f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.",
            NO_TYPE,
            {"provided_type": memory_type, "valid_type": PROCEDURAL},
        )
    inside = top_ids(filters)
    outside = {name: value for name, value in ids.items() if value is not None}
    told = said(
        to_turns(messages),
        to_scope(joined(outside, inside), spaces=setup.compat != "v2"),
        metadata=metadata,
        expiration_date=expiration_date,
        timestamp=timestamp,
        infer=None if isinstance(infer, Unset) else bool(infer),
        prompt=prompt,
        wait=bool(wait),
    )
    model = setup.model if llm is None else as_model(llm)
    return (add if memory_type is None else add_procedure)(setup, told, model)


def refuse_hosted(name: str, value: object) -> None:
    """Refuse what only mem0's hosted product knows.

    Raises:
        ValidationError: it was given.
    """
    if value is not None:
        raise ValidationError(f"{name}={value!r} is known to mem0's hosted product only.")


def owner_of(setup: Setup, user_id: Any, agent_id: Any, run_id: Any) -> Scope:
    """Make the scope of an erasure.

    Raises:
        ValidationError: nobody is named.
    """
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    if all(value is None for value in ids.values()):
        raise ValidationError(
            "At least one filter is required to delete all memories. If you want to delete all "
            "memories, use the `reset()` method."
        )
    return to_scope(ids, spaces=setup.compat != "v2")


def text_of_update(setup: Setup, text: str | None, data: str | None) -> str | None:
    """Choose the new text: `data` is the old name of `text`."""
    if data is None:
        return text
    if text is not None and text != data:
        raise ValidationError("text and data differ. Give text alone.")
    setup.say_once("data")
    return data


def with_more(
    filters: Mapping[str, Any] | None, more: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Add the second filter that mem0's asynchronous search takes; both must hold.

    Raises:
        ValidationError: the first is no mapping.
    """
    if not more:
        return filters
    ids = top_ids(filters)
    rest = {name: value for name, value in (filters or {}).items() if name not in ids}
    return {**ids, "AND": [one for one in (rest, more) if one]}
