"""Attention as submodels (NPUW_LLM_PREFILL_ATTENTION_HINT, NPUW_LLM_GENERATE_ATTENTION_HINT).

A static model attends to all positions that its cache can ever hold. Here each of its attentions
is a separate submodel (a group of ops that ``execution.partition`` cuts out), which the host runs
only over the conversation's positions.

HFA, host flash attention: a program reads the stored rows in tiles; the host runs only tiles with
visible rows; a last program reads the new rows. The tiles carry the intermediate values of online
softmax: a weighted sum of values, the largest score, and the sum of weights.

DYNAMIC: the graph runs on the host, with the current number of stored rows.

    groups         the ops of each attention
    pattern        recognition of attention over a cache and new rows
    shapes         inputs, outputs and sizes of such an attention
    tile_graphs    the programs of HFA, as graphs
    tile_ports     their inputs and outputs
    container      these programs as bytes
    masks          visible positions, and the masks of tiles
    workspace      bindings of programs, and values carried between tiles
    flash_model    execution of tiles
    flash_device   a device for HFA
    dynamic_device a device for DYNAMIC

Source: docs/reference/npuw.md#attention-kinds; M. Milakov and N. Gimelshein, "Online normalizer
calculation for softmax" (2018); T. Dao et al., "FlashAttention" (2022).
"""
