"""Output models as JSON schemas that strict structured output accepts, and as outlines for prompts."""

from typing import Any

from pydantic import BaseModel


def strict_schema(model: type[BaseModel], name: str) -> dict[str, Any]:
    """A JSON schema in the subset that strict structured output accepts.

    Every object is closed and requires all of its keys, references are written out (several servers
    do not follow them), and what the subset lacks (formats, ranges, defaults) moves into descriptions.

    Args:
        model: The output model. Must not refer to itself.
        name: Title of the schema, which providers take as the name of the format or tool.
    """
    raw = model.model_json_schema()
    schema = _strict(raw, raw.get("$defs", {}))
    summary = (model.__doc__ or name).strip().splitlines()[0]
    return {"title": name, "description": summary, **{k: v for k, v in schema.items() if k != "description"}}


def outline(schema: dict[str, Any], indent: int = 0) -> str:
    """A strict schema as a commented JSON outline, for people and for models that get it in the prompt.

    Shorter than the schema itself, and less likely to be echoed instead of filled in.
    """
    if "anyOf" in schema:
        return " or ".join(outline(option, indent) for option in schema["anyOf"])
    if "enum" in schema:
        return "|".join(f'"{value}"' for value in schema["enum"])
    kind = schema.get("type", "")
    if kind == "array":
        return f"[{outline(schema['items'], indent)}, ...]"
    if kind != "object":
        return "true|false" if kind == "boolean" else kind or "any"
    pad = "  " * (indent + 1)
    lines = []
    for key, value in schema["properties"].items():
        note = f"  // {value['description']}" if "description" in value else ""
        lines.append(f'{pad}"{key}": {outline(value, indent + 1)},{note}')
    return "\n".join(["{", *lines, "  " * indent + "}"])


def _strict(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        target = defs[schema["$ref"].rsplit("/", 1)[-1]]
        return _strict({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, defs)
    description = _description(schema)
    return {**({"description": description} if description else {}), **_shape(schema, defs)}


def _shape(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """The schema without description, and without what the strict subset lacks."""
    kind = schema.get("type")
    if "anyOf" in schema:
        return {"anyOf": [_strict(option, defs) for option in schema["anyOf"]]}
    if "const" in schema or "enum" in schema:
        return {"type": kind or "string", "enum": schema.get("enum", [schema.get("const")])}
    if kind == "array":
        return {"type": kind, "items": _strict(schema["items"], defs)}
    if kind == "object":
        properties = {key: _strict(value, defs) for key, value in schema.get("properties", {}).items()}
        return {
            "type": kind,
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    return {"type": kind}


def _description(schema: dict[str, Any]) -> str:
    """The description with what strict schemas cannot say."""
    said = [schema["description"].split("\n\n")[0].replace("\n", " ")] if "description" in schema else []
    options = [schema, *schema.get("anyOf", [])]
    if any(option.get("format") == "date-time" for option in options):
        said.append("ISO 8601 with zone")
    if "minimum" in schema or "maximum" in schema:
        said.append(f"{schema.get('minimum', 'any')} to {schema.get('maximum', 'any')}")
    return "; ".join(said)
