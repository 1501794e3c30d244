"""The policy `openai:MODEL`: a model behind a server that speaks the chat completions protocol.

`policy.py` is the policy, `client.py` reaches the server, `messages.py` writes what is sent, `completion.py` reads the
answers, `secrets.py` keeps keys out of texts. The `openai` package repeats failed requests. No server is started here,
and nothing is known of any one model.
"""
