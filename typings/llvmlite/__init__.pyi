# Types of the part of llvmlite that the native engine uses; the package brings none.
