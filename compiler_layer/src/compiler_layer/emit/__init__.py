"""From a scheduled program to the bytes of a blob.

records      sections of records, as rows of fields
dma, dpu     the fields of a transfer, of a product
programs     SHAVE code, and which tile runs what
lists        the task lists of one stretch, for one run of it
stamp        barriers in records, for all runs at once
relocations  what must be relocated in a section, as arrays
merge        the lists of a whole program: records of repeated stretches are copied as arrays
metadata     names and shapes of inputs and outputs
layer_map    whose each task is
elf          the file
blob         all of this together
"""
