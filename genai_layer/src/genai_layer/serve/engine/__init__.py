"""A language model behind an asyncio interface.

contract   interface to the endpoints
"""
