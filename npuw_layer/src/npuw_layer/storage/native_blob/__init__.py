"""A model for the NPU itself as one file, as OpenVINO's NPU plugin exports it: without NPUW.

    payload      the compiler's output: one ELF, and zeros up to a page
    metadata     u32 version, and fields that versions added one after the other (``metadata``)
    section      ours: data without a field in the plugin's metadata (``section``)
    footer       u64 size of the payload, and "OVNPU" (``container``)

All numbers are little-endian. The plugin's reader skips all bytes between the metadata and the
footer, where its older versions wrote zeros up to a page. So our section is there, alone. A blob
without a section, with or without zeros there, can be read, too. A raw blob is the payload alone:
ELF readers accept both, as they ignore trailing bytes.

    metadata   the fields, by the version that added them: a table
    container  payload, metadata and footer
    section    our section: versions, options, digests, the files of weights, initial values
    payload    the part that runs: one ELF, decrypted

Static models write and read such files (``kinds.static.native_blob``).

Weights: with CACHE_MODE = OPTIMIZE_SPEED they are sections of the ELF, as in the plugin. With
OPTIMIZE_SIZE they are its inputs, named by file and offset. For these the plugin adds init
schedules, programs that convert weights for the main one. Our programs read the model's files
directly, so no init schedules are needed; a blob with init schedules is rejected.

Source: docs/reference/npuw.md#native-blobs; metadata.cpp, metadata.hpp and
blob_format_importers.cpp of the plugin, as of OpenVINO 2026.4.
"""
