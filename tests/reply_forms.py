"""Replies as models write them: the form by which `auto` reads each, and its writer."""

import json
from collections.abc import Callable


def call(action: str, **names: str) -> str:
    return json.dumps({names.get("name", "name"): "act", names.get("arguments", "arguments"): {"action": action}})


def pipes(text: str) -> Callable[[str], str]:
    """Return the writer of a call whose marks have bars, the action at `@`."""
    return lambda action: text.replace("@", action)


FORMS: dict[str, tuple[str, Callable[[str], str]]] = {
    "tag": ("tag", "I think. <action>{}</action>".format),
    "tag, upper case": ("tag", "<ACTION> {} </ACTION> and on".format),
    "tag, full stop": ("tag", "<action>{}.</action>".format),
    "tag, quotes": ("tag", '<action>"{}"</action>'.format),
    "tag, typographic quotes": ("tag", "<action>“{}”</action>".format),
    "tag, bold": ("tag", "<action>**{}**</action>".format),
    "tag, italics": ("tag", "<action>_{}_</action>".format),
    "tag, backticks": ("tag", "<action>`{}`</action>".format),
    "tag, fence": ("tag", "<action>\n```text\n{}\n```\n</action>".format),
    "tag, brackets": ("tag", "<action>[{}]</action>".format),
    "tag, full-width": ("tag", "＜action＞{}＜/action＞".format),
    "tag, closing mark cut off by the server": ("tag", "So I do it. <action>{}".format),
    "tag of MiniMax M3's call": ("tag", pipes("]<]minimax[>[<action>@]<]minimax[>[</action>")),
    "answer": ("answer", "<answer>\n{}\n</answer>".format),
    "response": ("answer", "<response>{}</response>".format),
    "action of BALROG": ("answer", pipes("<|ACTION|>@<|END|>")),
    "boxed": ("boxed", lambda action: rf"Therefore $\boxed{{{action}}}$."),
    "boxed text": ("boxed", lambda action: rf"Answer: \boxed{{\text{{{action}}}}}"),
    "box of GLM": ("box", pipes("It is <|begin_of_box|>@<|end_of_box|>.")),
    "JSON": ("call", lambda action: json.dumps({"thoughts": "a {wall}", "action": action})),
    "JSON in a fence": ("call", lambda action: f"```json\n{json.dumps({'Action': action}, indent=1)}\n```"),
    "JSON with a comma and a line break": ("call", lambda action: f'{{"thoughts": "a\nwall", "action": "{action}",}}'),
    "JSON list of actions": ("call", lambda action: json.dumps({"actions": [action]})),
    "call of Hermes, Qwen": ("call", lambda action: f"<tool_call>{call(action)}</tool_call>"),
    "call of xLAM, Mistral": ("call", lambda action: f"[TOOL_CALLS][{call(action)}]"),
    "call of Llama": ("call", lambda action: f"<|python_tag|>{call(action, arguments='parameters')}"),
    "call of Inkling": ("call", lambda action: f"<|message_model|>act{call(action, arguments='args')}<|end_message|>"),
    "call of Apertus": ("call", lambda action: f"<|tools_prefix|>{json.dumps([{'act': {'action': action}}])}"),
    "call of Kimi K2": ("call", lambda action: f"functions.act:0<|x|>{json.dumps({'action': action})}<|end|>"),
    "call with arguments as a string": (
        "call",
        lambda action: json.dumps({"function": {"name": "act", "arguments": json.dumps({"action": action})}}),
    ),
    "call by name": ("call", lambda action: json.dumps({"name": action, "arguments": {}})),
    "call of Qwen3-Coder": (
        "call",
        "<tool_call><function=act><parameter=action>\n{}\n</parameter></function></tool_call>".format,
    ),
    "call of MiniMax M2": ("call", '<invoke name="act"><parameter name="action">{}</parameter></invoke>'.format),
    "call of DeepSeek V3.2": (
        "call",
        '<｜DSML｜invoke name="act"><｜DSML｜parameter name="action" string="true">{}</｜DSML｜parameter>'.format,
    ),
    "call of MiniCPM": ("call", '<function name="act"><param name="action"><![CDATA[{}]]></param></function>'.format),
    "call of GLM": (
        "call",
        "<tool_call>act\n<arg_key>action</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>".format,
    ),
    "call of K2 Horizon": (
        "call",
        pipes("<ifm|tool_call>act<ifm|arg_key>action</ifm|arg_key><ifm|arg_value>@</ifm|arg_value>"),
    ),
    "call of GLM Flash": ("call", "<tool_call>act><arg_key>action={}</arg_value>".format),
    "call of Kimi K3": ("call", pipes('<|open|>argument key="action" type="string"<|sep|>@<|close|>argument<|sep|>')),
    "call of Solar Open 2": ("call", pipes("<|tool_arg:start|>action<|tool_arg:value|>@<|tool_arg:end|>")),
    "call of Llama 4, Gemma 3, Olmo 3": ("call", '<function_calls>act(action="{}")</function_calls>'.format),
    "call of Gemma 4": ("call", pipes('<|tool_call>call:act{action:<|"|>@<|"|>}<tool_call|>')),
    "call of Gemma 4, stripped": ("call", pipes("call:act{action:@}")),
    "call of FunctionGemma": ("call", pipes("call:act{action:<escape>@<escape>}<end_function_call>")),
    "call of gpt-oss, stripped": (
        "call",
        lambda action: f"assistantcommentary to=functions.act json{json.dumps({'action': action})}",
    ),
    "call of CWM": ("call", "<tool: function>act {}</tool>".format),
    "dict of Python": ("call", pipes("{'action': '@'}")),
    "line": ("line", "A wall.\nAction: {}".format),
    "line, bold": ("line", "A wall.\n**Action:** {}\nSo be it.".format),
    "line, bold as a whole": ("line", "**Action: {}**".format),
    "line, upper case": ("line", "ACTION: {}.".format),
    "line, value below": ("line", "Final Answer:\n`{}`".format),
    "line of ReAct": ("line", "Thought: go\nAction: act\nAction Input: {}".format),
    "brackets": ("brackets", "I choose [{}] here".format),
    "last line": ("bare", "There is a wall.\n\n{}".format),
    "last line, full stop": ("bare", "**{}.**\n".format),
    "response of Apriel": ("bare", "A wall. [BEGIN FINAL RESPONSE]{}[END FINAL RESPONSE]".format),
    "last line, end tokens": ("bare", pipes("<|START_ACTION|>\n@<|END_OF_TURN_TOKEN|>\n</s>")),
    "fence": ("bare", "So:\n```\n{}\n```\n".format),
}
