"""Which sentences ask for something to be forgotten, and what of a text is meant."""

import pytest

from memcycle.core.language.forget_requests import holds, requests_in, states


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Forget that I take sugar in my coffee.", "coffe sugar take"),
        ("Please forget my doctor's number.", "doctor number"),
        ("By the way, please forget that I'm diabetic", "diabet"),
        ("Can you please forget where I live?", "live"),
        ("I want you to forget that my sister is ill.", "ill sister"),
        ("delete what I said about my ex", "ex"),
        ("Forget everything about Tom.", "tom"),
        ("Forget what I told you about Tom, it was a joke.", "tom"),
        ("Vergiss meine Adresse, ich brauche sie nicht", "adress"),
        ("Erase my diagnosis from your memory.", "diagnosi"),
        ("Don't remember my phone number", "number phone"),
        ("Vergiss bitte, dass ich Zucker in meinen Kaffee nehme.", "kaffe nehm zucker"),
        ("Kannst du bitte meine Adresse vergessen?", "adress"),
        ("Vergiss, was ich über Zucker gesagt habe.", "zucker"),
        ("Oublie que je prends du sucre dans mon café.", "cafe prend sucr"),
        ("S'il te plaît, oublie mon adresse.", "adress"),
        ("Efface ce que j'ai dit sur mon ex.", "ex"),
        ("Olvida que tomo azúcar en el café.", "azucar cafe tomo"),
        ("Por favor, olvida mi dirección.", "direccion"),
        ("Dimentica che prendo lo zucchero nel caffè.", "caff prendo zucchero"),
        ("Cancella quello che ho detto su Tom.", "tom"),
        ("Esqueça que eu moro em Lisboa.", "lisboa moro"),
        ("Vergeet dat ik in Utrecht woon.", "utrecht woon"),
        ("请忘记我的地址", "地址 我的 的地"),
    ],
)
def test_a_request_and_what_it_names(text, words):
    [request] = requests_in(text)
    assert " ".join(sorted(request.words)) == words


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget that I take sugar.",
        "I forgot my keys.",
        "Forget it.",
        "Forget that, I was wrong.",
        "Forget what I said.",
        "Forget everything.",
        "Never forget that I love you",
        'She said: "Forget that I love you."',
        'He wrote: "Hello. Forget that I smoke. Bye."',
        "If I say forget that I smoke, do it.",
        "Did you forget that I take sugar?",
        "I can't forget my first dog.",
        "Forget about the Paris trip, we go to Rome.",
        "Delete the file report.txt",
        "Delete my appointment with Dr. Weiss tomorrow",
        "```\nForget that I smoke.\n```",
        "Vergiss nicht, dass ich Zucker nehme.",
        "N'oublie pas mon adresse",
        "No olvides mi dirección",
        "Non dimenticare che prendo lo zucchero",
        "别忘了我的地址",
    ],
)
def test_no_request(text):
    assert requests_in(text) == []


@pytest.mark.parametrize(
    ("request_text", "meant", "others"),
    [
        (
            "Forget that I take sugar in my coffee.",
            [
                "I take sugar in my coffee.",
                "Ana takes sugar in her coffee",
                "Oh, I take brown sugar in my coffee!",
            ],
            [
                "I drink coffee.",
                "I don't take sugar in my coffee.",
                "My sister takes sugar in her coffee.",
                "I take my daughter to the sugar factory by the coffee shop.",
            ],
        ),
        (
            "Please forget my doctor's number.",
            ["My doctor's number is 555-0199.", "Ana's doctor's number is 555-0199"],
            ["I asked my doctor for the number of the clinic.", "My daughter's doctor's number is 7."],
        ),
        (
            "Vergiss bitte, dass ich Zucker in meinen Kaffee nehme.",
            ["Ich nehme Zucker in meinen Kaffee."],
            ["Ich trinke Kaffee.", "Meine Schwester nimmt Zucker."],
        ),
        (
            "Please forget that I sold my canoe.",
            ["I sold my canoe.", "I sold my old canoe last week."],
            ["I bought a canoe.", "My brother sold his canoe."],
        ),
        ("Forget that I went to Rome.", ["I went to Rome in May."], ["My aunt went to Rome."]),
        ("Forget that I am dying.", ["I am dying."], ["My dog is dying."]),
        ("Forget that I earned 3,000 euros.", ["I earned 3,000 euros."], ["I earned 300 euros."]),
    ],
)
def test_what_is_meant(request_text, meant, others):
    [request] = requests_in(request_text)
    assert [text for text in [*meant, *others] if states(request, text, "Ana")] == meant


def test_a_question_holds_it_and_does_not_state_it():
    [request] = requests_in("Forget that I take sugar.")
    assert holds(request, "Do I take sugar?", "Ana")
    assert not states(request, "Do I take sugar?", "Ana")
