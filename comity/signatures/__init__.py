"""Web Bot Auth: signatures of requests by which a server knows a crawler (docs/signatures.md).

    keys          private keys in files, and sets of public keys
    signer        signs the requests of a crawler
    directory     signs the response with the crawler's public keys
    verifier      verifies the signatures of a request

The format is draft-meunier-web-bot-auth-architecture-05 with what its successor
draft-ietf-webbotauth-httpsig-protocol-00 requires. Signatures are HTTP Message Signatures (RFC
9421) with Ed25519. http-message-signatures builds their signature base, cryptography has the keys.
Nothing here connects to a network.
"""

from __future__ import annotations

WELL_KNOWN = "/.well-known/http-message-signatures-directory"  # the path of a key directory
MEDIA_TYPE = "application/http-message-signatures-directory+json"  # of a key directory
TAG = "web-bot-auth"  # the `tag` of the signatures of requests
DIRECTORY_TAG = "http-message-signatures-directory"  # the `tag` of the signatures of a directory
