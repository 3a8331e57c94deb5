# Authlib against a node, by its usual calls alone. It reads what to use from its first line of
# input; where a person would have to sign in it prints the address, and reads where that led to.

import json
import os
import sys

from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
import requests

given = json.loads(sys.stdin.readline())
# It would speak to no server without TLS; this one is on the same machine.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"


def visit(url):
    print(json.dumps({"visit": url}), flush=True)
    return sys.stdin.readline().strip()


def told(what, **of):
    print(json.dumps({"told": what, **of}), flush=True)


def refused(call):
    try:
        call()
    except OAuthError as error:
        return error.error
    return None


def works(token):
    address = given["issuer"] + "/resources/graph/meta"
    headers = {"Authorization": "Bearer " + token["access_token"]}
    return requests.get(address, headers=headers, timeout=30).status_code


def signing(client, session):
    if client["method"] == "private_key_jwt":
        session.client_secret = client["key"]
        session.register_client_auth_method(
            PrivateKeyJWT(metadata["token_endpoint"], alg="RS256")
        )
    return session


address = get_well_known_url(given["issuer"], external=True)
metadata = AuthorizationServerMetadata(requests.get(address, timeout=30).json())
metadata.validate()
told("metadata", issuer=metadata["issuer"])

for client in given["clients"]:
    method = client["method"]
    session = OAuth2Session(
        client["id"],
        client.get("secret"),
        scope=given["scope"],
        redirect_uri=given["redirect"],
        token_endpoint_auth_method=method,
        revocation_endpoint_auth_method=method,
        code_challenge_method="S256",
    )
    signing(client, session)
    verifier = generate_token(64)
    url, state = session.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier
    )
    answer = visit(url)
    token = session.fetch_token(
        metadata["token_endpoint"],
        authorization_response=answer,
        state=state,
        code_verifier=verifier,
    )
    first = works(token)
    renewed = session.refresh_token(
        metadata["token_endpoint"], refresh_token=token["refresh_token"]
    )
    second = works(renewed)
    session.revoke_token(
        metadata["revocation_endpoint"],
        token=renewed["refresh_token"],
        token_type_hint="refresh_token",
    )
    third = works(renewed)
    again = refused(
        lambda: session.fetch_token(
            metadata["token_endpoint"],
            authorization_response=answer,
            state=state,
            code_verifier=verifier,
        )
    )
    told(method, works=[first, second, third], scope=token["scope"], again=again)

client = given["clients"][0]
session = OAuth2Session(
    client["id"], client["secret"], scope=given["scope"], redirect_uri=given["redirect"]
)
url, state = session.create_authorization_url(metadata["authorization_endpoint"])
token = session.fetch_token(
    metadata["token_endpoint"], authorization_response=visit(url), state=state
)
told("without a challenge", works=works(token))

for machine in given["machines"]:
    method = machine["method"]
    session = signing(
        machine,
        OAuth2Session(
            machine["id"],
            machine.get("secret"),
            scope=given["scope"],
            token_endpoint_auth_method=method,
            revocation_endpoint_auth_method=method,
        ),
    )
    token = session.fetch_token(
        metadata["token_endpoint"], grant_type="client_credentials"
    )
    first = works(token)

    def shown():
        answer = session.introspect_token(
            metadata["introspection_endpoint"], token=token["access_token"]
        )
        return answer.json()["active"]

    before = shown()
    session.revoke_token(
        metadata["revocation_endpoint"],
        token=token["access_token"],
        token_type_hint="access_token",
    )
    told(
        "client_credentials " + method,
        works=[first, works(token)],
        active=[before, shown()],
    )
