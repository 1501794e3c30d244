"""Replies as models write them: the form by which `auto` reads each, and its writer."""

from collections.abc import Callable

# Form -> name -> reply, with the action at `@`.
_TEMPLATES = {
    "tag": {
        "tag": "I think. <action>@</action>",
        "tag, upper case": "<ACTION> @ </ACTION> and on",
        "tag, full stop": "<action>@.</action>",
        "tag, quotes": '<action>"@"</action>',
        "tag, typographic quotes": "<action>“@”</action>",
        "tag, bold": "<action>**@**</action>",
        "tag, italics": "<action>_@_</action>",
        "tag, backticks": "<action>`@`</action>",
        "tag, fence": "<action>\n```text\n@\n```\n</action>",
        "tag, brackets": "<action>[@]</action>",
        "tag, full-width": "＜action＞@＜/action＞",
        "tag, closing mark cut off by the server": "So I do it. <action>@",
        "tag of MiniMax M3": "]<]minimax[>[<action>@]<]minimax[>[</action>",
    },
    "answer": {
        "answer": "<answer>\n@\n</answer>",
        "response": "<response>@</response>",
        "action of BALROG": "<|ACTION|>@<|END|>",
    },
    "boxed": {
        "boxed": "Therefore $\\boxed{@}$.",
        "boxed text": "Answer: \\boxed{\\text{@}}",
    },
    "box": {
        "box of GLM": "It is <|begin_of_box|>@<|end_of_box|>.",
    },
    "call": {
        "JSON": '{"thoughts": "a {wall}", "action": "@"}',
        "JSON in a fence": '```json\n{\n "Action": "@"\n}\n```',
        "JSON with a comma and a line break": '{"thoughts": "a\nwall", "action": "@",}',
        "JSON list of actions": '{"actions": ["@"]}',
        "Hermes, Qwen": '<tool_call>{"name": "act", "arguments": {"action": "@"}}</tool_call>',
        "xLAM, Mistral": '[TOOL_CALLS][{"name": "act", "arguments": {"action": "@"}}]',
        "Llama": '<|python_tag|>{"name": "act", "parameters": {"action": "@"}}',
        "Inkling": '<|message_model|>act{"name": "act", "args": {"action": "@"}}<|end_message|>',
        "Apertus": '<|tools_prefix|>[{"act": {"action": "@"}}]',
        "Kimi K2": 'functions.act:0<|x|>{"action": "@"}<|end|>',
        "arguments as a string": '{"function": {"name": "act", "arguments": "{\\"action\\": \\"@\\"}"}}',
        "name": '{"name": "@", "arguments": {}}',
        "Qwen3-Coder": "<tool_call><function=act><parameter=action>\n@\n</parameter></function></tool_call>",
        "MiniMax M2": '<invoke name="act"><parameter name="action">@</parameter></invoke>',
        "DeepSeek V3.2": '<｜DSML｜invoke name="act"><｜DSML｜parameter name="action">@</｜DSML｜parameter>',
        "MiniCPM": '<function name="act"><param name="action"><![CDATA[@]]></param></function>',
        "GLM": "<tool_call>act\n<arg_key>action</arg_key>\n<arg_value>@</arg_value>\n</tool_call>",
        "K2 Horizon": "<ifm|tool_call>act<ifm|arg_key>action</ifm|arg_key><ifm|arg_value>@</ifm|arg_value>",
        "GLM Flash": "<tool_call>act><arg_key>action=@</arg_value>",
        "Kimi K3": '<|open|>argument key="action" type="string"<|sep|>@<|close|>argument<|sep|>',
        "Solar Open 2": "<|tool_arg:start|>action<|tool_arg:value|>@<|tool_arg:end|>",
        "Llama 4, Gemma 3, Olmo 3": '<function_calls>act(action="@")</function_calls>',
        "Gemma 4": '<|tool_call>call:act{action:<|"|>@<|"|>}<tool_call|>',
        "Gemma 4, stripped": "call:act{action:@}",
        "FunctionGemma": "call:act{action:<escape>@<escape>}<end_function_call>",
        "gpt-oss, stripped": 'assistantcommentary to=functions.act json{"action": "@"}',
        "CWM": "<tool: function>act @</tool>",
        "dict of Python": "{'action': '@'}",
    },
    "line": {
        "line": "A wall.\nAction: @",
        "line, bold": "A wall.\n**Action:** @\nSo be it.",
        "line, bold as a whole": "**Action: @**",
        "line, upper case": "ACTION: @.",
        "line, value below": "Final Answer:\n`@`",
        "line of ReAct": "Thought: go\nAction: act\nAction Input: @",
    },
    "brackets": {
        "brackets": "I choose [@] here",
    },
    "bare": {
        "last line": "There is a wall.\n\n@",
        "last line, full stop": "**@.**\n",
        "response of Apriel": "A wall. [BEGIN FINAL RESPONSE]@[END FINAL RESPONSE]",
        "last line, end tokens": "<|START_ACTION|>\n@<|END_OF_TURN_TOKEN|>\n</s>",
        "fence": "So:\n```\n@\n```\n",
    },
}


def _writer(template: str) -> Callable[[str], str]:
    return lambda action: template.replace("@", action)


FORMS: dict[str, tuple[str, Callable[[str], str]]] = {
    name: (form, _writer(template)) for form, rows in _TEMPLATES.items() for name, template in rows.items()
}
