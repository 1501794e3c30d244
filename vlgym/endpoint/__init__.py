"""The policy `openai:MODEL`: a model behind a server that speaks the chat completions protocol.

`policy` asks, `client` reaches the server, `messages` writes, `completion` reads, `secrets` keeps
keys out of texts. The `openai` package repeats failed requests.
"""
