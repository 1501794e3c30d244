"""The client of a server of `vlgym serve`; it imports nothing of vlgym."""

from openenv.core.generic_client import GenericEnvClient


class VlgymEnv(GenericEnvClient):
    """Sends `{"reply": TEXT}`; observations have `image` (PNG, base64), `text`, `terminated`, `truncated`, `info`."""
