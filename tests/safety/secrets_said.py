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
SECRETS["api key"].append("sk-\u200bproj-abcDEF1234567890abcd")
SECRETS["card"] += [
    # No-break, narrow, thin and wide spaces, other dashes, nothing to see in between, other digits.
    "4111\u00a01111\u00a01111\u00a01111",
    "4111\u202f1111\u20091111\u30001111",
    "4111\u20111111\u20131111\u22121111",
    "4111 - 1111 - 1111 - 1111",
    "4111.1111.1111.1111",
    "4111\u200b1111\u20601111\u00ad1111",
    "41 11 11 11 11 11 11 11",
    "４１１１ １１１１ １１１１ １１１１",
    "٤١١١١١١١١١١١١١١١",
]
"""What is found wherever it stands, by kind."""

IN_CONTEXT = [
    ("password", "postgres://bob:{}@db.example/x", "s3cr3t"),
    ("password", "Password: {}", "swordfish"),
    ("password", "pwd={}", "tr0ub4dor"),
    ("password", "my password is {}", "hunter2"),
    ("password", "Mein Passwort ist {}", "geheim99"),
    ("password", "my password is: {}", "hunter22"),
    ("password", "my pass\u200bword is {}", "hun\u200bter22"),
    ("password", "ｐａｓｓｗｏｒｄ： {}", "ｈｕｎｔｅｒ２２"),
    ("password", "my password is “{}”", "correct horse battery"),
    ("password", "The password to the wifi is {}", "swordfish9"),
    ("password", "Password for Netflix: {}", "tiger99"),
    ("password", "my password (for the bank) is {}", "hunter22"),
    ("password", "I changed my password to {}", "hunter22"),
    ("password", "password -> {}", "hunter22"),
    ("password", "use {} as my password", "hunter22"),
    ("password", "the password {} works", "hunter22"),
    ("password", "My passcode is {}", "4471"),
    ("password", "PIN: {}", "4471"),
    ("password", "the pin for my card is {}", "44 71"),
    ("password", "Die PIN lautet {}", "4471"),
    ("password", "Das WLAN-Passwort heißt „{}“", "geheim99"),
    ("password", "Das Passwort für das WLAN ist {}", "geheim99"),
    ("password", "mot de passe : {}", "soleil42"),
    ("password", "mon mot de passe, c’est {}", "soleil42"),
    ("password", "La contraseña del correo es {}", "gato123"),
    ("password", "LA CONTRASEN\u0303A ES {}", "gato123"),
    ("password", "мой пароль это {}", "сорока7"),
    ("password", "密码是{}", "hunter22"),
    ("password", "비밀번호는 {}", "hunter22"),
    ("card", "CVV: {}", "123"),
    ("api key", "Mein API-Schlüssel lautet {}", "abcd1234efgh"),
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
    "The password to the 2nd floor wifi is unknown to me.",
    "The password is 8-16 characters long and must change on 2024-05-08 at 10:30am.",
    "I forgot my password in 2024. Our password policy of 2024 is strict.",
    "I need a password for the following sites: amazon, ebay",
    "I use 1Password as my password manager.",
    "Das Passwort für den Kurs am 3.4.2024 ist abgelaufen, mein Passwort ist seit 2023 ungültig.",
    "Mi contraseña es muy larga, mon mot de passe est trop court.",
    "She set a password and left at 10:30. What is my password?",
    "My bowling pin collection is 1200 pieces strong; PIN is a short word.",
    "She has 4471 stamps in room 12, order 4471 2291 1000 0001, 4 100 000 in all.",
    "ISBN 978-3-16-148410-0, DE89 3704 0044 0532 0130 00, lat 48.2082 16.3738, 47.0707 15.4395",
    "from 2023-01-02 to 2024-05-06 and 2024 2025 2026 2027, 1 2 3 4 5 6 7 8 9 10 11 12 13",
]
"""What only looks a little like one."""
