"""The Python code of a folder plugin: imported under a name of its own, so that no two plugins meet."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
import sys
import threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from shared.errors import PluginError
from shared.executors.threads import workers
from shared.folder_plugins.api import PluginAPI

REGISTER_SECONDS = 30.0
_numbers = itertools.count()
_sdk_lock = threading.Lock()


class PluginCode:
    """The imported package of one plugin instance; `unload` forgets it."""

    def __init__(self, plugin: str, file: Path) -> None:
        self._plugin, self._file = plugin, file
        self._name = f"_jaato_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', plugin)}_{next(_numbers)}"

    def register(self, api: PluginAPI) -> None:
        """Import the package and let it register; one that does not return in time is given up."""
        task = workers.submit(lambda: self._register(api))
        if not task.wait(REGISTER_SECONDS):
            self.unload()
            raise PluginError(f"plugin '{self._plugin}': register(api) did not return within {REGISTER_SECONDS:g} s")
        try:
            task.result()
        except PluginError:
            self.unload()
            raise
        except (Exception, SystemExit) as error:  # foreign code: whatever it does, the host goes on
            self.unload()
            raise PluginError(f"plugin '{self._plugin}' failed to load: {type(error).__name__}: {error}") from error

    def unload(self) -> None:
        """Forget the modules; what still refers to them keeps them alive."""
        for name in [name for name in sys.modules if name == self._name or name.startswith(self._name + ".")]:
            sys.modules.pop(name, None)

    def _register(self, api: PluginAPI) -> None:
        _provide_sdk()
        module = self._load()
        register: Any = getattr(module, "register", None)
        if not callable(register):
            raise PluginError(f"plugin '{self._plugin}': {self._file.name} has no function register(api)")
        register(api)

    def _load(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location(
            self._name,
            self._file,
            loader=_FromSource(self._name, str(self._file)),
            submodule_search_locations=[str(self._file.parent)],
        )
        if spec is None or spec.loader is None:
            raise PluginError(f"plugin '{self._plugin}': {self._file} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[self._name] = module
        spec.loader.exec_module(module)
        return module


class _FromSource(SourceFileLoader):
    """Reads the source every time: compiled code of a file that was edited a moment ago would be the old one."""

    def path_stats(self, path: Any) -> Any:
        """Without an age a file is neither looked up in the cache of compiled code nor put there."""
        raise OSError("not cached")


def _provide_sdk() -> None:
    """Plugins written for Conduit import `PluginAPI` from its package; where that is missing, ours stands in."""
    with _sdk_lock:
        if "conduit" in sys.modules or importlib.util.find_spec("conduit") is not None:
            return
        package, sdk = ModuleType("conduit"), ModuleType("conduit.plugin_sdk")
        package.__path__ = []
        package.plugin_sdk, sdk.PluginAPI = sdk, PluginAPI  # type: ignore[attr-defined]
        sys.modules |= {"conduit": package, "conduit.plugin_sdk": sdk}
