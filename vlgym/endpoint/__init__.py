"""The policy `openai:MODEL`: a model behind a server that speaks the chat completions protocol.

`policy.py` is the policy, `connection.py` how the server is reached, `messages.py` what is sent and read. The `openai`
package repeats failed requests. No server is started here, and nothing is known of any one model.
"""
