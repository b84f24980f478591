#!/usr/bin/env python3
"""Holds rendered chat templates against Jinja, set up as transformers does.

    templates.py RENDER_TEMPLATES DEPS [template...]

The templates are those that trl and axolotl carry, and the one-line ones of expressions.txt. Those named in MUST have to
render every conversation; of the others that use what is not supported, the error must say so.
"""
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

render_templates, deps = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
here = pathlib.Path(__file__).parent

# Published by the makers of the models; trl and axolotl carry them as they are.
MUST = re.compile(r"^(trl/(llama3|qwen2_5|qwen3|smollm|mistral|deepseek|gemma|phi|cohere|glm)|axolotl/(llama3|llama4|qwen|mistral|chatml|phi|gemma\b|pixtral|alpaca|deepseek))")


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("mark"), [], [], body).set_lineno(line)

    def mark(self, caller):
        return f"\ue000{caller()}\ue001"


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(
    1700000000, datetime.timezone.utc).strftime(form)

TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "The weather \"now\" in a city, à la carte.",
     "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "a city", "enum": ["A", "B"]},
      "days": {"type": "integer", "default": 3}, "scale": {"type": "number", "default": 1.5}}, "required": ["city"]},
     "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}},
]
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 2}}}]}
USER, ANSWER = {"role": "user", "content": "  Hi there!\n"}, {"role": "assistant", "content": "Hello, 'you' & <me>. "}
CONVERSATIONS = [
    [USER],
    [USER, ANSWER],
    [{"role": "system", "content": "Be brief.\n"}, USER, ANSWER, {"role": "user", "content": "And? 你好 😀"}],
    [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo."}, USER],
    [USER, {"role": "assistant", "content": "So.", "reasoning_content": "Because."}, USER, ANSWER],
    [USER, CALL, {"role": "tool", "content": "rain", "name": "weather", "tool_call_id": "abcdefghi"}, ANSWER],
    [USER, dict(CALL, content=None), {"role": "tool", "content": "{\"a\": 1}", "tool_call_id": "abcdefghi"}],
    [USER, dict(CALL, tool_calls=CALL["tool_calls"] * 2), {"role": "tool", "content": "1", "tool_call_id": "abcdefghi"},
     {"role": "tool", "content": "2", "tool_call_id": "abcdefghi"}, ANSWER, USER],
    [{"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "image"}, {"type": "text", "text": "two"}]}, ANSWER],
    [USER, USER],
    [ANSWER],
    [{"role": "odd", "content": "x"}],
    [],
]


def cases():
    for messages in CONVERSATIONS:
        for tools in (None, TOOLS):
            for prompt in (False, True):
                for more in ({}, {"enable_thinking": False, "tools_in_user_message": False, "builtin_tools": ["brave_search"]}):
                    variables = {"bos_token": "<s>", "eos_token": "</s>", **more}
                    yield {"messages": messages, "tools": tools, "variables": variables, "add_generation_prompt": prompt}


def expected(template, case):
    try:
        text = template.render(messages=case["messages"], tools=case["tools"], documents=None,
                               add_generation_prompt=case["add_generation_prompt"], **case["variables"])
    except Exception as error:
        return {"error": str(error)}
    plain, generated, length = [], [], 0
    for part in re.split("([\ue000\ue001])", text):
        if part in "\ue000\ue001" and part:
            generated.append(length)
        else:
            plain.append(part)
            length += len(part.encode())
    return {"text": "".join(plain), "generated": generated}


def run(name, source, all_cases, cases_path, folder):
    path = folder / "template.jinja"
    path.write_text(source)
    template = environment.from_string(source)
    result = subprocess.run([render_templates, path, cases_path], capture_output=True)
    if result.returncode:
        return result.stderr.decode().strip(), 0
    rendered = 0
    for case, ours in zip(all_cases, json.loads(result.stdout)):
        theirs = expected(template, case)
        if "error" in theirs and "error" in ours:
            # Content that is a list has no strip() in Python, either.
            if "is not supported" in ours["error"] and "of list is not" not in ours["error"]:
                return ours["error"], rendered
            continue
        if theirs != ours:
            return f"{ours} != {theirs} of {json.dumps(case)}"[:3000], rendered
        rendered += 1
    return None, rendered


def templates():
    for package, folder in (("trl", "trl/trl/chat_templates"), ("axolotl", "axolotl/axolotl/utils/chat_templates/templates")):
        for path in sorted((deps / "python" / folder).glob("*.jinja")):
            yield f"{package}/{path.stem}", path.read_text(), False
    for number, line in enumerate((here / "expressions.txt").read_text().splitlines(), 1):
        if line and not line.startswith("# "):
            yield f"expression {number}: {line}", line.replace("\\n", "\n"), True


def main():
    wanted = sys.argv[3:]
    failures, counts, unsupported = 0, [0, 0], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        all_cases = list(cases())
        paths = folder / "cases.json", folder / "one.json"
        paths[0].write_text(json.dumps(all_cases))
        paths[1].write_text(json.dumps(all_cases[10:11]))
        for title, source, short in templates():
            if wanted and not any(w in title for w in wanted):
                continue
            problem, rendered = run(title, source, all_cases[10:11] if short else all_cases, paths[short], folder)
            counts[short] += 1
            if problem and "is not supported" in problem and re.search(r"template:\d+: ", problem) and not (short or MUST.match(title)):
                unsupported.append(f"{title}: {problem}")
            elif problem or (not rendered and not short):
                failures += 1
                print(f"[  FAILED  ] {title}: {problem or 'nothing was rendered'}")
    print(f"{counts[0]} published templates over {len(all_cases)} conversations, {counts[1]} expressions; unsupported:")
    for line in unsupported:
        print(f"  {line[:200]}")
    print(f"[==========] {sum(counts)} test(s) run.")
    print(f"[  PASSED  ] {sum(counts) - failures} test(s).")
    sys.exit(1 if failures or not sum(counts) else 0)


main()
