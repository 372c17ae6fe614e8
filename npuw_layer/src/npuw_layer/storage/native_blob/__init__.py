"""A model for the NPU itself as one file, as the original's plugin exports it: no NPUW is in it.

    payload      what the compiler made: one ELF, and zeros up to a page
    metadata     u32 version, and fields that versions added one after the other (``metadata``)
    section      ours: what the fields have no room for (``section``)
    footer       u64 size of the payload, and "OVNPU" (``container``)

All numbers are little-endian. The original's reader skips whatever lies between the metadata and
the footer, where its older versions wrote zeros up to a page: so our section is there, and nothing
but it. A blob without it, with zeros or nothing there, is read as well. A raw blob is the payload
alone: ELF readers take both, as they ignore what follows.

    cursor     reads bytes that may be damaged
    metadata   the fields, by the version that added them: a table
    container  payload, metadata and footer
    section    what is ours: versions, options, digests, the files of weights, initial values
    payload    what runs of it: one ELF, in clear

Static models write and read such files (``kinds.static.native_blob``).

Weights: with CACHE_MODE = OPTIMIZE_SPEED they are sections of the ELF, as in the original. With
OPTIMIZE_SIZE they are its inputs, named by file and offset. There the original adds init schedules,
programs that convert weights for the main one. Our programs read the model's files as they are, so
there are none; a blob that has some is refused.

Source: fact sheet npuw §e.6; metadata.cpp, metadata.hpp and blob_format_importers.cpp of the
original's plugin, as of OpenVINO 2026.4.
"""
