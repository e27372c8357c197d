"""Stand-ins for modules that are not installed, so that a runtime's own argument parser can be built without torch.

A runtime declares its options in a few modules, but these import everything else. Here only the modules that declare
options are real; every other import gives a module whose attributes stand for anything.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import types
from pathlib import Path


class Anything:
    """Stands for a class, function or value of a module that is not here."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *values, **named):
        """As a decorator it gives back what it decorates, else one more stand-in."""
        decorates = len(values) == 1 and not named and callable(values[0]) and not isinstance(values[0], Anything)
        return values[0] if decorates else Anything()

    def __mro_entries__(self, _):
        return ()

    def __or__(self, _):
        return self

    def __ror__(self, _):
        return self

    def __getitem__(self, _):
        return Anything()

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __instancecheck__(self, _):
        return False

    def __subclasscheck__(self, _):
        return False

    def __lt__(self, _):
        return False

    __le__ = __gt__ = __ge__ = __lt__

    def __get_pydantic_core_schema__(self, *_):
        from pydantic_core import core_schema

        return core_schema.any_schema()


class Module(types.ModuleType):
    """A module that has every attribute."""

    __version__ = "99.0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = Anything()
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the real modules of one unpacked package, the packages in `installed` and the standard library.

    Every other import is a `Module`, also where the real one is installed: so the result is the same everywhere.
    """

    def __init__(self, root, package, real, installed):
        self.root, self.package, self.real = Path(root), package, real
        self.known = set(sys.stdlib_module_names) | set(installed) | {"org"}

    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        if top in self.known or top.startswith("_sysconfigdata"):
            return None
        if top != self.package:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if any(name == real or name.startswith(real + ".") for real in self.real):
            return importlib.machinery.PathFinder.find_spec(name, path or [str(self.root)])
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
        spec.submodule_search_locations = [str(self.root / name.replace(".", "/"))]
        return spec

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass


def install(root, package, real, installed, libraries):
    """Makes `package`, unpacked in `root`, importable; `libraries` is the folder of the packages in `installed`.

    Its environment variables are unset, as they change defaults and choices.
    """
    for name in [name for name in os.environ if name.startswith(package.upper() + "_")]:
        del os.environ[name]
    sys.path.insert(0, str(libraries))
    sys.meta_path.insert(0, Finder(root, package, real, installed))
