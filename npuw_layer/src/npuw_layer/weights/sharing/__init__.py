"""Weights in one piece of device memory, used by several processes at once.

Processes that name the same bank, of the same model, meet in a private folder. The first one adds
up what the weights need, allocates one arena, copies them once, and seals the arena: from then on
the kernel lets nobody write to it, and only now it is handed out, as a descriptor with offsets,
over a Unix socket. Every process that has it hands it on to later ones, so any of them may die:

- in the middle of the copy: the arena was handed to nobody, and goes with its process; the lock
  that it held goes too, and the next process begins anew;
- later: the others hold the memory by their own descriptors, and serve who comes;
- the last one: the memory goes with it. What stays is a file, which who comes next removes.

=============== =======================================================
module          is about
=============== =======================================================
``layout``      sizes, offsets, and what tells one arena from others
``meeting``     the folder, its lock, and the sockets in it
``wire``        messages, which are not trusted
``server``      answering newcomers
``arena``       making an arena, attaching to one
``usage``       what it saves, counted by the kernel
``weights``     the arena of a bank of weights
=============== =======================================================
"""
