"""### Render certificates

Started by the database when certificates are inserted, or by a person: renders the certificate `certificate_id`,
or, without one, all that have no PDF yet. The original file is never replaced; a new one stands beside it. Last
night's expired certificates are not rendered here: a download does that for the one that is asked for.

**Touches** `certificates` in `clearpath_db`; writes files through `clearpath_storage`.

**If it fails** certificates without a PDF keep waiting, and the next run takes them. A certificate that can't be
printed has its reason in `render_error` and on the console's page; mend its data and ask for it again there.
Clear the failed task or trigger the DAG again: file names come from the content, so a repeat writes the same files.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetWatcher, dag, task

from almanac.defaults import run_limit, work
from almanac.params import optional_id, run_params
from almanac.runs import begin, end, open_run
from almanac.triggers import Notified
from include.clearpath import ZONE, certificate_rendering

# Named once: a second Asset of this name without the watcher would delete the watcher.
WAITING = Asset(
    "clearpath_certificates",
    watchers=[AssetWatcher("clearpath_certificates", Notified("clearpath_db", "clearpath_certificates"))],
)


def outside():
    from hooks.certificate_pdf import certificate_printer  # noqa: PLC0415 - kept out of the parse
    from hooks.storage import storage  # noqa: PLC0415 - as above

    return certificate_rendering.Outside(certificate_printer(), storage("clearpath_storage"))


@dag(
    schedule=[WAITING],
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="clearpath", priority="NORMAL"),
    params=run_params(
        certificate_id=optional_id("Empty: all that wait for their first PDF."),
    ),
    tags=["clearpath", "pool:clearpath", "on-failure:rerun"],
    doc_md=__doc__,
)
def clearpath_certificate_rendering():
    @task.short_circuit
    def check_run(**context):
        return begin(context, certificate_rendering, outside())

    @task
    def render_certificates(**context):
        with open_run(context, certificate_rendering) as run:
            certificate_rendering.render_certificates(run, outside())
            return dict(run.counts)

    @task
    def report_run(rendered, **context):  # noqa: ARG001 - shows what the summary follows
        return end(context, certificate_rendering)

    check_run() >> (rendered := render_certificates())
    report_run(rendered)


clearpath_certificate_rendering()
