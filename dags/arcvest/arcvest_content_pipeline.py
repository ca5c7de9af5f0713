"""### Write an idea up for the content calendar

Started by the database when a `process_pipeline` job of `job_queue` falls due, or by a person with an `idea_id`: one
job is claimed, and its idea becomes an article in four steps (Claude drafts, GPT improves, Gemini polishes, Claude
packages). Each step is saved in `pipeline_data` before the next one starts; what is saved is not paid for again. The
last step puts the article into the calendar, once per idea. If more jobs are due, the next run is called at once.

**Touches** `job_queue`, `idea_queue`, `content_calendar`, `activity_log` in `arcvest_db`; asks the models behind
`arcvest_models`. Which models: the variables `arcvest_claude_model`, `arcvest_gpt_model`, `arcvest_gemini_model`.

**If it fails** nothing that was saved is lost. A failed step fails the job in the queue, not this run: it is tried
again after 30, 60, 120 and 240 s, then `failed` with its reason in `last_error` and a line in `activity_log`; trigger
this DAG with the `idea_id` to try once more. State `deferred`: a vendor is out of reach, or our key for it is wrong,
which costs no attempt. If a task itself failed, clear it, or leave it: its job is taken back after 10 minutes without
a heartbeat.
"""

from __future__ import annotations

import pendulum
from airflow.sdk import Asset, AssetWatcher, Param, dag, task

from almanac.defaults import run_limit, work
from almanac.params import run_params
from almanac.runs import begin, end, ledger, open_run
from almanac.triggers import Notified
from include.arcvest import ZONE, content_pipeline, pipeline_call

NOTIFIED = Notified("arcvest_db", pipeline_call.CHANNEL)
# Named once: a second Asset of this name without the watcher would delete the watcher.
WAITING = Asset("arcvest_pipeline", watchers=[AssetWatcher("arcvest_pipeline", NOTIFIED)])
IDEA = Param(None, type=["null", "string"], format="uuid", title="Idea", description="Empty: the next one.")


def outside(context):
    from hooks.models import models  # noqa: PLC0415 - kept out of the parse

    return content_pipeline.Outside(models("arcvest_models"), ledger(context))


@dag(
    schedule=[WAITING],
    start_date=pendulum.datetime(2026, 1, 1, tz=str(ZONE)),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=run_limit(),
    default_args=work(pool="arcvest", priority="NORMAL"),
    params=run_params(idea_id=IDEA),
    tags=["arcvest", "pool:arcvest", "on-failure:wait"],
    doc_md=__doc__,
)
def arcvest_content_pipeline():
    def do(step, context, claimed=None):
        with open_run(context, content_pipeline, claimed) as run:
            return step(run, outside(context))

    @task.short_circuit
    def check_run(**context):
        return begin(context, content_pipeline, outside(context))

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def claim_job(**context):
        return do(content_pipeline.claim_job, context)

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def claude_draft(claimed, **context):
        return do(content_pipeline.claude_draft, context, claimed)

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def gpt_improve(claimed, **context):
        return do(content_pipeline.gpt_improve, context, claimed)

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def gemini_polish(claimed, **context):
        return do(content_pipeline.gemini_polish, context, claimed)

    @task.short_circuit(ignore_downstream_trigger_rules=False)
    def claude_package(claimed, **context):
        return do(content_pipeline.claude_package, context, claimed)

    @task
    def save_article(claimed, **context):
        return do(content_pipeline.save_article, context, claimed)

    @task(trigger_rule="none_failed")
    def report_run(**context):
        return end(context, content_pipeline)

    check_run() >> (job := claim_job())
    written = claude_draft(job) >> gpt_improve(job) >> gemini_polish(job) >> claude_package(job)
    written >> save_article(job) >> report_run()


arcvest_content_pipeline()
