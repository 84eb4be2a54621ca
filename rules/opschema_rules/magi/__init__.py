"""MagiCompiler's custom ops: functions under ``magi_register_custom_op``, the dataclasses they take, and how they are lowered."""
