"""npu-chat, as ``python -m genai_layer.tools.chat``."""

import sys

from genai_layer.tools.chat import main

sys.exit(main())
