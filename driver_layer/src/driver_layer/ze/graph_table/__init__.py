"""Functions of the graph extension's table, by subject; ``ze.graph_extension`` joins them."""
