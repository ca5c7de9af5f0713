"""What `make quick` leaves out: tests that take their time, each for a reason. `make test` runs them all.

What is named is run: `make quick TESTS=tests/ecocomply/test_deadline_alert.py` leaves nothing of that file out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Thirty jobs, each a page of rules and a database for every case; the promises look at them all the same.
_OF_A_JOB = {
    str(file.relative_to(ROOT)): "a job's own rules: name its file while you work on it"
    for dag in sorted((ROOT / "dags" / "ecocomply").glob("*.py"))
    if (file := ROOT / "tests" / "ecocomply" / f"test_{dag.stem.removeprefix('ecocomply_')}.py").is_file()
}

SLOW = _OF_A_JOB | {
    "tests/almanac/test_preloading.py": "Airflow's processes, and files that change under them",
    "tests/almanac/test_job_records.py::test_a_long_statement": "a statement of seconds",
    "tests/arcvest/test_content_pipeline.py": "a run for every answer of a vendor, and for every call of a run",
    "tests/arcvest/test_queue_worker.py": "a worker that listens, and rivals that wait for it",
    "tests/arcvest/test_worker_over_the_wire.py": "a worker that listens for seconds",
    "tests/bench/": "servers of their own, and work in plenty",
    "tests/clearpath/test_adopted_database.py": "a database as an application left it",
    "tests/clearpath/test_console.py::test_a_deep_page": "a log of many thousand mails",
    "tests/clearpath/test_console.py::test_a_page_of_a_long_log": "as above",
    "tests/clearpath/test_demo.py": "fills whole databases",
    "tests/clearpath/test_end_to_end.py": "all jobs, one after the other, with restarts",
    "tests/clearpath/test_lab_result_polling.py::test_many_are_tried_again": "thousands of records",
    "tests/clearpath/test_mail_over_resend.py": "a provider on loopback, and waits that it asks for",
    "tests/clearpath/test_mail_templates.py": "a browser that looks at every mail",
    "tests/clearpath/test_outside_calls.py::test_a_slow_provider": "a provider that keeps one waiting",
    "tests/clearpath/test_processes.py": "processes that are killed",
    "tests/clearpath/test_schedules.py::test_every_zone": "every zone there is",
    "tests/clearpath/test_units.py::test_any": "whatever can be made up",
    "tests/console/": "Airflow's own web app",
    "tests/dags/test_promises.py::test_a_day_made_up_for_later": "nine runs a DAG",
    "tests/dags/test_promises.py::test_a_preview_makes_nobody_wait": "runs beside each other",
    "tests/dags/test_promises.py::test_killed_anywhere": "a run for every statement of a run",
    "tests/dags/test_promises.py::test_one_bad_row": "a database for every table",
    "tests/dags/test_promises.py::test_preview_": "three runs a DAG, on data of two sizes",
    "tests/dags/test_promises.py::test_the_as_of": "two databases a DAG",
    "tests/dags/test_promises.py::test_the_seed": "test_twice_equals_once is quick",
    "tests/dags/test_promises.py::test_the_session_zone": "three databases a DAG",
    "tests/ecocomply/test_asked_by_a_user.py::test_a_users_job_does": "two databases a DAG",
    "tests/ecocomply/test_adopted_database.py": "a database as an application left it",
    "tests/ecocomply/test_digest_delivery.py": "a run for every event of a run, and mails of thousands of lines",
    "tests/ecocomply/test_enum_words.py": "a statement for every word of every table",
    "tests/ecocomply/test_demo.py::test_every_job_has_work": "a demo's data a DAG",
    "tests/ecocomply/test_expressions.py::test_a_hostile": "expressions that run until they are stopped",
    "tests/ecocomply/test_first_run.py": "a database a DAG",
    "tests/ecocomply/test_generator.py": "databases full of rows",
    "tests/ecocomply/test_job_attempts.py::test_killed": "a run for every event of a run",
    "tests/ecocomply/test_odd_dates_of_tenants.py": "a company for every odd date of every column",
    "tests/ecocomply/test_row_level_security.py::test_without_its": "every policy broken, table by table",
    "tests/ecocomply_api/": "Airflow's own web app",
    "tests/hooks/": "servers on loopback, and waits that they ask for",
    "tests/leadmetrics/test_notification_sending.py::test_a_run_that_was_killed_over": "a Redis, and a worker of Node",
    "tests/leadmetrics/test_notification_sending.py::test_killed": "a run for every event of a run",
    "tests/nifya/test_job_runs.py": "rivals that wait for each other, and a database for every end of a job",
    "tests/nifya/test_adopted_database.py": "a database as an application left it",
    "tests/nifya/test_schedules.py::test_any": "whatever can be made up",
    "tests/nifya/test_schedules.py::test_every_zone": "every zone, ten years of it",
    "tests/nifya_api/": "Airflow's own web app",
    "tests/queues/test_drain.py::test_killed": "a run for every event of a run",
    "tests/queues/test_drain.py::test_two_workers": "workers that wait for each other",
    "tests/queues/test_model.py": "thousands of operations",
    "tests/stack/test_bootstrap.py": "make, in a folder of its own",
    "tests/stack/test_commands.py": "processes of the stack",
    "tests/stack/test_compose.py::test_every_command": "every command of an image",
    "tests/stack/test_compose.py::test_the_images_steps": "an image's steps, in a folder",
    "tests/stack/test_docs.py": "reads every DAG in a process of its own",
    "tests/stack/test_layers.py": "reads every import of the project, many times",
    "tests/stack/test_new_dag.py": "a project of its own",
    "tests/stack/test_postgres.py": "servers that start and end",
    "tests/stack/test_prepare.py": "servers and databases of its own",
    "tests/stack/test_processes.py": "processes that are ended",
    "tests/test_adding_a_job.py": "a project of its own",
    "tests/test_docs.py::test_nothing_is_of_one_machine": "reads every file",
    "tests/test_feeds.py::test_hostile_documents": "documents that take their time to be refused",
    "tests/test_isolation.py::test_a_transaction_that_always_loses": "ten waits",
    "tests/test_migrations.py": "every revision on a database in use",
    "tests/test_proof.py": "looks up every mutation, and runs tests on broken code",
}
"""The beginning of a test's id, and why it is slow."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow ones, but for those whose file was named."""
    named = {argument.partition("::")[0] for argument in config.args}
    for item in items:
        if item.nodeid.startswith(tuple(SLOW)) and item.nodeid.partition("::")[0] not in named:
            item.add_marker(pytest.mark.slow)
