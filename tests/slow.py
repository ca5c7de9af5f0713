"""What `make quick` leaves out: tests that take their time, each for a reason. `make test` runs them all."""

from __future__ import annotations

import pytest

SLOW = {
    "tests/almanac/test_preloading.py": "Airflow's processes, and files that change under them",
    "tests/arcvest/test_worker_over_the_wire.py": "a worker that listens for seconds",
    "tests/bench/": "servers of their own, and work in plenty",
    "tests/clearpath/test_console.py::test_a_page_of_a_long_log": "a log of many thousand mails",
    "tests/clearpath/test_console.py::test_a_deep_page": "as above",
    "tests/clearpath/test_demo.py": "fills whole databases",
    "tests/clearpath/test_end_to_end.py": "all jobs, one after the other, with restarts",
    "tests/clearpath/test_mail_over_resend.py": "a provider on loopback, and waits that it asks for",
    "tests/clearpath/test_mail_templates.py": "a browser that looks at every mail",
    "tests/clearpath/test_processes.py": "processes that are killed",
    "tests/console/": "Airflow's own web app",
    "tests/dags/test_promises.py::test_a_day_made_up_for_later": "nine runs a DAG",
    "tests/dags/test_promises.py::test_a_preview_makes_nobody_wait": "runs beside each other",
    "tests/dags/test_promises.py::test_killed_anywhere": "a run for every statement of a run",
    "tests/dags/test_promises.py::test_preview_equals_the_real_run[generated": "ten times the rows, thrice",
    "tests/dags/test_promises.py::test_the_session_zone": "three databases a DAG",
    "tests/ecocomply/test_row_level_security.py::test_without_its": "every policy broken, table by table",
    "tests/ecocomply_api/": "Airflow's own web app",
    "tests/hooks/test_bell.py": "databases that are cut off, and waits",
    "tests/hooks/test_certificate_pdf.py": "prints and reads pages",
    "tests/hooks/test_connections.py::test_in_the_scheduler": "an Airflow process",
    "tests/hooks/test_connections.py::test_the_test_button_in_the_api_server": "Airflow's own web app",
    "tests/hooks/test_email.py::test_importing": "a process of its own",
    "tests/hooks/test_feeds.py::test_a_bad_answer": "answers that keep one waiting",
    "tests/hooks/in_airflow/": "Airflow's own API and database",
    "tests/hooks/test_light_imports.py": "a process for every import",
    "tests/hooks/test_notification_queue.py": "a Redis, and a worker of Node",
    "tests/hooks/test_provider_info.py": "a process for every import",
    "tests/leadmetrics/test_notification_sending.py::test_killed": "a run for every event of a run",
    "tests/leadmetrics/test_notification_sending.py::test_a_run_that_was_killed_over": "a Redis, and a worker of Node",
    "tests/nifya/test_schedules.py::test_any": "whatever can be made up",
    "tests/nifya/test_schedules.py::test_every_zone": "every zone, ten years of it",
    "tests/nifya_api/": "Airflow's own web app",
    "tests/queues/test_drain.py::test_two_workers": "workers that wait for each other",
    "tests/queues/test_model.py": "thousands of operations",
    "tests/stack/test_bootstrap.py": "make, in a folder of its own",
    "tests/stack/test_commands.py": "processes of the stack",
    "tests/stack/test_compose.py::test_the_images_steps": "an image's steps, in a folder",
    "tests/stack/test_docs.py": "reads every DAG in a process of its own",
    "tests/stack/test_layers.py": "reads every import of the project, many times",
    "tests/stack/test_postgres.py": "servers that start and end",
    "tests/stack/test_new_dag.py": "a project of its own",
    "tests/test_adding_a_job.py": "a project of its own",
    "tests/test_feeds.py::test_hostile_documents": "documents that take their time to be refused",
    "tests/test_migrations.py": "every revision on a database in use",
    "tests/test_proof.py::test_the_runner": "runs tests on broken code",
}
"""The beginning of a test's id, and why it is slow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones; an entry that fits no test of a whole collection is an error of the list."""
    for item in items:
        if item.nodeid.startswith(tuple(SLOW)):
            item.add_marker(pytest.mark.slow)
