"""Who may see a page and who may change something: Airflow's own users and roles decide."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.api_fastapi.core_api.security import (
    AccessView,
    GetUserDep,
    requires_access_dag,
    requires_access_view,
)
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends, Form, HTTPException, Request, status

from include.errors import BadInput

SESSION_COOKIE = "almanac_console"
_SESSION_BYTES = 32


def reads_runs_of(dag_id: str | None = None) -> Any:
    """Let in who may read the runs of a DAG; None means the `dag_id` in the path, or any DAG's."""
    return Depends(requires_access_dag("GET", DagAccessEntity.RUN, dag_id))


def triggers(dag_id: str) -> Any:
    """Let in who may trigger a DAG, and who means it: see `meant`."""
    return Depends(requires_access_dag("POST", DagAccessEntity.RUN, dag_id))


def signed_in() -> Any:
    """Let in who may see Airflow's pages at all."""
    return Depends(requires_access_view(AccessView.WEBSITE))


def readable_address(request: Request) -> None:
    """Refuse an address that no text of a database can hold. Raises BadInput."""
    if "\x00" in request.scope["path"] or any(
        "\x00" in value for _, value in request.query_params.multi_items()
    ):
        raise BadInput("address: holds a null character, which nothing here does")


def readable_dags(user: GetUserDep) -> set[str]:
    """Return the DAGs that the user may read."""
    return get_auth_manager().get_authorized_dag_ids(user=user, method="GET")


ReadableDags = Annotated[set[str], Depends(readable_dags)]


def may_trigger(dag_id: str) -> Callable[..., bool]:
    """Return a dependency that says whether the user may trigger a DAG, so that a page offers it or not."""

    def inner(user: GetUserDep) -> bool:
        return may("POST", (dag_id,), user)

    return inner


def may(method: Literal["GET", "POST"], dag_ids: Sequence[str], user: GetUserDep) -> bool:
    """Say whether the user may read the runs of all these DAGs (GET), or trigger them all (POST)."""
    return all(
        get_auth_manager().is_authorized_dag(
            method=method,
            access_entity=DagAccessEntity.RUN,
            details=DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id)),
            user=user,
        )
        for dag_id in dag_ids
    )


def new_session() -> str:
    """Return a value for the session cookie that a form's token is bound to."""
    return secrets.token_urlsafe(_SESSION_BYTES)


def form_token(session: str, user: GetUserDep) -> str:
    """Return what a form of this session and this user has to bring back."""
    key = get_signing_key("api", "secret_key").encode()
    return hmac.new(key, f"console form\0{user.get_id()}\0{session}".encode(), hashlib.sha256).hexdigest()


def meant(
    request: Request, user: GetUserDep, form_token_sent: Annotated[str, Form(alias="form_token")] = ""
) -> None:
    """Refuse a change that another site's page could have asked for in the user's name.

    A browser adds Airflow's login cookie to every request, whoever wrote the form. So a change has to come
    from our own origin and bring the token of the session's own form. A request with a token of its own in
    the Authorization header carries nothing ambient, and passes.
    """
    if _brings_own_login(request):
        return
    from_own_page(request)
    session = request.cookies.get(SESSION_COOKIE, "")
    # Bytes: of texts it compares ASCII alone.
    sent = form_token_sent.encode("utf-8", "surrogatepass")
    if not session or not hmac.compare_digest(form_token(session, user).encode(), sent):
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, "This form is out of date. Load the page again and repeat it."
        )


def from_own_page(request: Request) -> None:
    """Refuse a change that another site's page asks for with the user's cookie; a login of its own passes.

    Enough for what no form can send: a body that is JSON, or a method other than POST.
    """
    if not _brings_own_login(request) and not _from_own_origin(request):
        raise HTTPException(
            status.HTTP_403_FORBIDDEN, "This request does not come from one of Airflow's pages."
        )


def _brings_own_login(request: Request) -> bool:
    return request.headers.get("authorization", "").lower().startswith("bearer ")


def _from_own_origin(request: Request) -> bool:
    site = request.headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return site == "same-origin"
    own = {request.headers.get("host", ""), urlsplit(conf.get("api", "base_url", fallback="")).netloc}
    try:
        return urlsplit(origin).netloc in own - {""}
    except ValueError:
        # Such as "http://[": no browser sends it.
        return False
