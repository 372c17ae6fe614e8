"""npu-bench, as ``python -m genai_layer.tools.bench``."""

import sys

from genai_layer.tools.bench import main

sys.exit(main())
