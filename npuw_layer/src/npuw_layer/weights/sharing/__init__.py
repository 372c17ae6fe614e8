"""Weights in one allocation of device memory, shared by several processes.

Processes that name the same bank, of the same model, meet in a private folder. The first one sums
up the weights' sizes, allocates one arena, copies them once, and seals the arena: from then on the
kernel rejects every write. Only a sealed arena is passed on, as a descriptor with offsets, over a
Unix socket. Every process that has the arena passes it on to later ones, so any of them may die:

- during the copy: no other process has the arena, so it is freed with its process; the lock is
  released, too, and the next process starts again;
- later: the others hold the memory by their own descriptors, and serve newcomers;
- the last one: the memory is freed with it. A socket file remains; the next process removes it.

=============== =======================================================
module          content
=============== =======================================================
``meeting``     the folder, its lock, and the sockets in it
``wire``        messages, which are not trusted
``server``      answers to newcomers
``arena``       creating an arena, attaching to one
``usage``       memory that sharing saves, counted by the kernel
``bank``        the arena of a weights bank, on request of the options
=============== =======================================================
"""
