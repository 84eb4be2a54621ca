"""`INOUT` for what is read before it is written, and for nothing else."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.pypto.examples import CONFIG
from opschema_rules.pypto.pack import PACK
from tests.rules.pypto.programs import program

TENSOR = "const ChipTensor &c = orch_args.tensor(2).ref();\n"

FILL = "CoreTaskArgs f;\nf.add_output(c);\nrt_submit_aiv_task(1, f);\n"

READ = "CoreTaskArgs r;\nr.add_input(c);\nrt_submit_aiv_task(0, r);\n"

ADD = "CoreTaskArgs p;\np.add_inout(c);\nrt_submit_aiv_task(0, p);\n"

TOLD = "CoreTaskArgs p;\np.add_inout(c);\np.add_scalar(k == 0);\nrt_submit_aiv_task(0, p);\n"


def looped(body: str) -> str:
    return f"for (int k = 0; k < 4; k++) {{\n{body}}}\n"


def migrate(body: str, *options: str) -> Migrated:
    return migrate_files(PACK, "orchestration-directions", program("", TENSOR + body), options)


def declared(done: Migrated) -> str:
    """The orchestration's own signature."""
    return done.files[CONFIG].partition('"signature": [')[2].partition("]")[0].replace("D.", "")


@pytest.mark.parametrize(
    "body",
    [
        READ,
        looped(READ),
        READ + FILL,
        looped(READ + FILL),
        looped(ADD),
        looped(looped(ADD)),
        looped("ChipTensor v = c.view(s, o);\n" + ADD.replace("(c)", "(v)")),
        looped(ADD) + FILL,
    ],
)
def test_what_is_read_first_becomes_inout(body: str) -> None:
    done = migrate(body)
    assert declared(done) == "IN, IN, INOUT"
    assert done.sites() == [f"{CONFIG}:10: declare tensor 2 of the orchestration `INOUT` instead of `OUT`"]
    assert done.notes() == []


@pytest.mark.parametrize(
    "body",
    [
        FILL,
        FILL + READ,
        FILL + looped(ADD),
        ADD,
        looped(TOLD),
        looped("if (k > 0) {\n" + READ + "}\n" + FILL),
        looped("if (k == 0) {\n" + FILL + "}\n" + ADD),
        "fill(c);\n" + READ,
        "if (first) {\nreturn;\n}\n" + READ,
        "const ChipTensor &d = first ? c : orch_args.tensor(1).ref();\nCoreTaskArgs f;\nf.add_output(d);\n"
        "rt_submit_aiv_task(1, f);\n" + READ,
        "fill(orch_args);\n" + READ,
    ],
)
def test_what_may_be_written_first_stays(body: str) -> None:
    done = migrate(body)
    assert declared(done) == "IN, IN, OUT"
    assert done.sites() == []


WRITTEN = "CoreTaskArgs w;\nw.add_output(orch_args.tensor(1).ref());\nrt_submit_aiv_task(0, w);\n"


def test_what_is_written_becomes_inout_where_that_is_asked_for() -> None:
    assert declared(migrate(WRITTEN)) == "IN, IN, OUT"
    assert declared(migrate(WRITTEN, "written=true")) == "IN, INOUT, OUT"
    assert declared(migrate(WRITTEN.replace("output", "no_dep"), "written=true")) == "IN, IN, OUT"


def test_a_suppressed_entry_stays() -> None:
    files = program("", TENSOR + READ)
    files[CONFIG] = files[CONFIG].replace(
        "D.IN, D.OUT],\n}", "D.IN, D.OUT],  # opschema: ignore[PTO106] all zero\n}", 1
    )
    done = migrate_files(PACK, "orchestration-directions", files)
    assert done.files == files
    assert done.sites()[0].endswith("(suppressed)")
