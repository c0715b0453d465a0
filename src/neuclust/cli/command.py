"""Commands whose errors speak of options: the library names a field, the command line the option that sets it."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from neuclust.errors import NeuclustError


class Command(TyperCommand):
    """A command that puts `--slate-size` for `slate_size` in front of an error about it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NeuclustError as error:
            option = self._option(error.group or error.field)
            if option is None:
                raise
            named = f"{option} {error.field}" if error.group else option
            raise type(error)(error.message, field=named) from error

    def _option(self, field: str | None) -> str | None:
        """The long option of this command that fills the field, if it has one."""
        names = [name for parameter in self.params if parameter.name == field for name in parameter.opts]
        return next((name for name in names if name.startswith("--")), None)
