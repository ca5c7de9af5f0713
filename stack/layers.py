"""The rule of the layers that import-linter has no contract for: systems know nothing of each other.

Every package beneath `include` is a system, unless the contract's `shared` names it: one that is added
tomorrow is held to the rule without being listed.
"""

from __future__ import annotations

from typing import Any, cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class SystemsContract(Contract):
    """No system imports another one, and what all of them share imports none.

    `root` is the package that holds the systems, `shared` the packages in it that are none.
    """

    type_name = "systems"

    root = fields.StringField()
    shared = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001 - as the base has it
        """Find every import that leads into a system from outside of it."""
        # The fields hold their values once the contract is made; their types don't say so.
        root, shared = str(self.root), set(cast("set[str]", self.shared or set()))
        packages = {module for module in graph.find_children(root) if graph.find_children(module)}
        systems = sorted(packages - shared)
        if not systems:
            raise ValueError(f"{root} holds no system")
        found = []
        for system in systems:
            inside = {system, *graph.find_descendants(system)}
            for imported in inside:
                for importer in graph.find_modules_that_directly_import(imported):
                    if importer.startswith(f"{root}.") and importer not in inside:
                        details = graph.get_import_details(importer=importer, imported=imported)
                        found.append((importer, imported, [detail["line_number"] for detail in details]))
        return ContractCheck(kept=not found, metadata={"found": sorted(found)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name every import that breaks the rule."""
        found: list[tuple[Any, ...]] = check.metadata["found"]
        for importer, imported, lines in found:
            output.print_error(f"{importer} imports {imported} (line {', '.join(map(str, lines))})")
