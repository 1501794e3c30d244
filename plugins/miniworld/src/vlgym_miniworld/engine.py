"""Access to MiniWorld: opened headless and at first use, one drawing per environment, everything freed on close.

Nothing of MiniWorld, pyglet or OpenGL is imported before `open_world` is called, so constructing an environment
(as Gymnasium's vector environments do in the parent process) touches no OpenGL and workers may be forked
afterwards. The worlds themselves, their physics and their pictures are MiniWorld's own; this module only fixes
what several of them in one process do to each other. It knows nothing of tasks, prompts or rewards.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from vlgym.errors import MissingSystemPartError, UserError

from .plugin import PACKAGES

if TYPE_CHECKING:
    from miniworld.miniworld import MiniWorldEnv
else:  # the class it is mixed into is imported late
    MiniWorldEnv = object

SHARED_LIST = 1
"""The one display list that MiniWorld uses for the walls of every environment of a process."""

_log = logging.getLogger(__name__)
_classes: dict[str, type] = {}
_envs: Any = None  # the module miniworld.envs, once it is imported
_active_list = 0
_threads: dict[int, int] = {}  # process: the thread that opened OpenGL in it
_opened_in: int | None = None  # process that opened OpenGL
_fork_safe = False  # whether a child forked later can go on using it


class OwnDrawing(MiniWorldEnv):
    """Mixin over a MiniWorld class: its own display list, no wasted first episode, no picture that nobody sees,
    and a `close` that frees.

    MiniWorld records the walls of whichever environment was reset last under display list 1, which all contexts
    of a process share, so the others then draw the wrong rooms. Here each environment owns a list, and the list
    number is swapped in while MiniWorld draws.
    """

    shadow_window: Any
    unseen = False
    """Whether `reset` and `step` leave out drawing, which takes most of a step."""

    def __init__(self, **kwargs: Any) -> None:
        self._list = 0
        self._quiet = False
        self._constructing = True
        super().__init__(**kwargs)
        self._constructing = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the constructor's own unseeded reset is left out."""
        if self._constructing:
            return None, {}
        _refuse_elsewhere()
        self.shadow_window.switch_to()  # textures are loaded before MiniWorld itself chooses a context
        with self._moving():
            return super().reset(seed=seed, options=options)

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, and draw at the moment at which MiniWorld does: some worlds take things away after it."""
        _refuse_elsewhere()
        with self._moving():
            return super().step(action)

    def render_obs(self, frame_buffer: Any = None) -> Any:
        """Return the agent's view; None within `reset` and `step` of an `unseen` world."""
        _refuse_elsewhere()
        return None if self._quiet else super().render_obs(frame_buffer)

    @contextmanager
    def _moving(self) -> Iterator[None]:
        self._quiet = self.unseen
        try:
            yield
        finally:
            self._quiet = False

    def _render_static(self) -> None:
        from pyglet import gl

        if not self._list:
            self._list = int(gl.glGenLists(1))
        with _drawing(self._list):
            super()._render_static()

    def _render_world(self, frame_buffer: Any, render_agent: bool) -> np.ndarray:
        with _drawing(self._list):
            return super()._render_world(frame_buffer, render_agent)

    def close(self) -> None:
        """Free frame buffers, their textures and depth buffers, the display list and the context; safe to
        repeat.
        """
        _refuse_elsewhere()
        window, self.shadow_window = self.shadow_window, None
        if window is None or window.context is None:
            return
        from pyglet import gl

        window.switch_to()
        for frame_buffer in (self.obs_fb, self.vis_fb):
            _delete_frame_buffer(frame_buffer)
        if self._list:
            gl.glDeleteLists(self._list, 1)
        self.text_label.delete()
        super().close()
        window.close()


def open_world(name: str, image_size: tuple[int, int], *, domain_rand: bool = False, **kwargs: Any) -> Any:
    """Open a MiniWorld environment that draws its own rooms.

    Returns:
        A MiniWorld environment that was not reset yet.

    Raises:
        MissingSystemPartError: OpenGL cannot be opened here; the message has the apt line.
        UserError: OpenGL was open already when this process was forked, or belongs to another thread.
    """
    _refuse_elsewhere()
    height, width = image_size
    if domain_rand:
        kwargs["domain_rand"] = True  # said only where it is wanted: MiniWorld's Sign does not take the argument
    # The second frame buffer serves only MiniWorld's own window; at its default size it costs 38 MB.
    return _world_class(name)(obs_height=height, obs_width=width, window_height=16, window_width=16, **kwargs)


def _world_class(name: str) -> type:
    global _envs
    if name not in _classes:
        _envs = _envs or _import_miniworld()
        base = getattr(_envs, name)
        _classes[name] = type(name, (OwnDrawing, base), {"__module__": __name__, "__doc__": base.__doc__})
    return _classes[name]


def _import_miniworld() -> Any:
    """Import `miniworld.envs` headless and patch what it does wrong; import errors become one message."""
    global _opened_in, _fork_safe
    import pyglet

    first = "pyglet.gl" not in sys.modules
    if first and sys.platform.startswith("linux"):
        # EGL draws off screen. MiniWorld's own switch for this is read too late to have an effect.
        pyglet.options["headless"] = True
        # Mesa's software renderer without threads: a forked worker can then draw, and many environments do not
        # compete for the cores. With threads one environment alone on an idle machine is about 10% faster.
        os.environ.setdefault("LP_NUM_THREADS", "0")
        os.environ.setdefault("MESA_SHADER_CACHE_DISABLE", "true")  # its writer is a thread, too
    try:
        envs = importlib.import_module("miniworld.envs")
        engine, opengl = importlib.import_module("miniworld.miniworld"), importlib.import_module("miniworld.opengl")
    except ImportError as error:
        raise _missing(error) from error
    except Exception as error:
        # pyglet's NoSuchDisplayException and NoSuchConfigException live in modules that may have failed to
        # import.
        if type(error).__module__.startswith("pyglet."):
            raise _missing(error) from error
        raise
    renderer = importlib.import_module("pyglet.gl").gl_info.get_renderer()
    _opened_in = os.getpid()
    _fork_safe = first and renderer.startswith("llvmpipe") and os.environ["LP_NUM_THREADS"] == "0"
    _patch_lists(engine)
    _patch_resolve(opengl)
    vars(opengl)["print"] = _log_line  # "Falling back to num_samples=4" belongs into the log, not on stdout
    return envs


def _missing(error: Exception) -> MissingSystemPartError:
    return MissingSystemPartError(
        f"MiniWorld cannot open OpenGL on this machine ({type(error).__name__}: {error}). "
        "It draws without a screen through EGL and Mesa. Install them: "
        f"sudo apt-get install -y {' '.join(PACKAGES)}"
    )


def _patch_lists(engine: Any) -> None:
    """Let MiniWorld's module use the active environment's display list wherever it says list 1."""
    delete, new, call = engine.glDeleteLists, engine.glNewList, engine.glCallList

    def own(number: int) -> int:
        return _active_list if number == SHARED_LIST and _active_list else number

    engine.glDeleteLists = lambda number, count: delete(own(number), count)
    engine.glNewList = lambda number, mode: new(own(number), mode)
    engine.glCallList = lambda number: call(own(number))


def _patch_resolve(opengl: Any) -> None:
    """Leave out the copy of the depth buffer after each frame of our environments: 0.15 ms at 224 x 224, and
    never read.
    """
    from pyglet.gl import GL_DEPTH_BUFFER_BIT

    blit = opengl.glBlitFramebuffer

    def copy_color(*args: Any) -> None:
        if not (_active_list and args[8] == GL_DEPTH_BUFFER_BIT):
            blit(*args)

    opengl.glBlitFramebuffer = copy_color


@contextmanager
def _drawing(number: int) -> Iterator[None]:
    global _active_list
    _active_list = number
    try:
        yield
    finally:
        _active_list = 0


def _delete_frame_buffer(frame_buffer: Any) -> None:
    """Delete a MiniWorld frame buffer and what is attached to it; MiniWorld keeps no names, so OpenGL is asked."""
    from pyglet import gl

    for fbo in (frame_buffer.multi_fbo, frame_buffer.final_fbo):
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, fbo)
        color, depth = (_attached(point) for point in (gl.GL_COLOR_ATTACHMENT0, gl.GL_DEPTH_ATTACHMENT))
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, 0)
        gl.glDeleteFramebuffers(1, fbo)
        gl.glDeleteTextures(1, color)
        gl.glDeleteRenderbuffers(1, depth)


def _attached(point: int) -> Any:
    from pyglet import gl

    name = gl.GLint(0)
    gl.glGetFramebufferAttachmentParameteriv(gl.GL_FRAMEBUFFER, point, gl.GL_FRAMEBUFFER_ATTACHMENT_OBJECT_NAME, name)
    return gl.GLuint(name.value)


def _refuse_elsewhere() -> None:
    if _opened_in is not None and _opened_in != os.getpid() and not _fork_safe:
        raise UserError(
            "OpenGL was already open when this process was forked, and its driver would hang here. "
            "Make the vector environment before the first reset of a MiniWorld environment in the parent, "
            "or start the workers afresh: "
            'gymnasium.make_vec(..., vectorization_mode="async", vector_kwargs={"context": "forkserver"}).'
        )
    if _threads.setdefault(os.getpid(), threading.get_ident()) != threading.get_ident():  # pictures would stand still
        raise UserError(
            "OpenGL belongs to the thread that first used a MiniWorld environment in this process, and this is another "
            "one. Use all of them in that thread, or in processes: "
            'gymnasium.make_vec(..., vectorization_mode="async").'
        )


def _log_line(*parts: object, **_: object) -> None:
    _log.debug(" ".join(str(part) for part in parts))
