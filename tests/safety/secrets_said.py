"""Secrets that people paste into chats, none of them real, and who makes them."""

KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nq83vAbCd\n-----END RSA PRIVATE KEY-----"

SECRETS = {
    "api key": [
        "sk-proj-abcDEF1234567890abcd",
        "sk-ant-api03-Zx81-abcdefghij",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0abcdefghijkl",
        "glpat-abcDEF123456-xyz789",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "AIzaSyD-abcdefghijklmnopqrstuvwxyz12345",
        "xoxb-123456789012-abcdefABCDEF",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "hf_abcdefghijklmnopqrstuvwxyz1234",
        "SG.abcdefghijklmnop1234.abcdefghijklmnop5678",
    ],
    "token": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN"],
    "private key": [KEY_BLOCK, KEY_BLOCK.replace("RSA ", ""), KEY_BLOCK.partition("\n-----END")[0]],
    "card": ["4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "3782 822463 10005"],
}
"""What is found wherever it stands, by kind."""

IN_CONTEXT = [
    ("password", "postgres://bob:{}@db.example/x", "s3cr3t"),
    ("password", "Password: {}", "swordfish"),
    ("password", "pwd={}", "tr0ub4dor"),
    ("password", "my password is {}", "hunter2"),
    ("password", "Mein Passwort ist {}", "geheim99"),
    ("token", "Authorization: Bearer {}", "abcdefgh12345678"),
    ("api key", "api_key = '{}'", "abcd1234efgh"),
    ("api key", "the client secret is {}", "abcd1234efgh"),
]
"""Kind, the words around, and what is a secret only among them."""

HARMLESS = [
    "I keep two beehives on the roof.",
    "The password is important to her.",
    "We talked about passwords, keys and tokens.",
    "sk-learn-something-rather-long is a package",
    "call me on +43 664 1234567 or 0043 664 123 45 67",
    "4111111111111112 is no card",
    "message 1234567890123456789",
    "1715155200000 ms, on 2024-05-08 at 12:00",
    "http://localhost:8080/v1 and mail@example.org",
    "D1:3, [image: a cat], {name}",
    "basic understanding of bearer bonds",
]
"""What only looks a little like one."""
