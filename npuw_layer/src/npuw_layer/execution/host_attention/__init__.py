"""Attention by itself: what NPUW_LLM_PREFILL_ATTENTION_HINT and its sister ask for.

A static model attends over all positions that its cache may ever hold. Here each attention of it is
a submodel of its own (a group of ops that ``execution.partition`` cuts out), which the host runs
as far as the conversation reaches.

HFA, host flash attention: the stored rows go through a program in tiles, of which the host runs
those that somebody attends to, and then the new rows through a last one. Between them lies what
softmax needs to be found online: a weighted sum of values, the largest score, and the sum of
weights.

DYNAMIC: the graph is run on the host with as many stored rows as there are.

    isolate        puts the devices below where options ask for them
    groups         which ops belong to an attention
    pattern        what they compute, if it is attention over a cache and new rows
    shapes         what such an attention takes and gives
    tiles          how stored rows are cut
    tile_graphs    the programs of HFA, as graphs
    tile_ports     their inputs and outputs
    container      these programs as bytes
    masks          who is attended to
    workspace      what programs are bound to, and what lies between tiles
    flash_model    runs tiles
    flash_device   a device for HFA
    dynamic_device a device for DYNAMIC

Source: fact sheet npuw §a.7; M. Milakov and N. Gimelshein, "Online normalizer calculation for
softmax" (2018); T. Dao et al., "FlashAttention" (2022).
"""
