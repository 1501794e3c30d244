"""The policy `openai:MODEL`: a model behind a server that speaks the chat completions protocol.

`policy.py` is the policy, `messages.py` how the server is reached and what is sent, `completion.py` how its answers are
read. The `openai` package repeats failed requests. No server is started here, and nothing is known of any one model.
"""
