"""Reusable rewrites of Python source, made of edits so that every byte not asked for stays.

A round over one file: parse it, let codemods mark what goes and what changes, take the edits::

    tree = draft.tree(path)                                # opschema_cli.source.python_tree
    rewrite = Rewrite(tree)
    drop_attribute(rewrite, tree.class_def("AlibiFwdOp"), "_device_carrier")
    draft.edit(path, rewrite.edits())                      # one parse a file and round

Each codemod takes the :class:`Rewrite` first and marks all or nothing: where it cannot be certain it raises
:class:`Refused`, whose ``problems`` have a place (``offset``) and a ``reason``, and the rewrite is as it was.
Several as one: ``with rewrite.all_or_nothing():``, or ``len(marks)`` and ``restore()`` over several files.
Codemods of one round see each other's marks: what was removed no longer counts as a use (``rewrite.is_gone(node)``).
So mark the large removals first. A codemod looks at one file, and where it takes a class or function, at that one
alone: uses elsewhere are its caller's to judge (``tree.attributes(name)``, ``tree.names(name)``, ``tree.calls(name)``).
``pure`` names functions (dotted, or the last name) whose calls may be dropped with the value that they give.

Nodes are libcst's. They are found by name, or by a span that the facts of the file give::

    tree.function("check_l1")                 -> FunctionDef   (LookupError: none or several)
    tree.method("AlibiFwdOp", "forward")      -> FunctionDef
    tree.class_def("AlibiFwdOp")              -> ClassDef
    tree.find(expr.span, cst.Call)            -> node written exactly there (LookupError)
    tree.calls("_register_x")                 -> calls by the callee's last name
    tree.attributes("_wrapped"), tree.names("x"), tree.strings("x")
    tree.statement(node), tree.enclosing(node, cst.FunctionDef), tree.span(node), tree.code(node)

| module | codemods, each with the rewrite before its other parameters |
|---|---|
| ``rewrite`` | ``Rewrite(tree)``: ``remove(*statements)``, ``replace(span, text)``, ``is_gone(node)``, ``edits()``, ``text()`` |
| ``attributes`` | ``drop_attribute(class_def, name, pure=())``: class attribute, ``self.name = ...`` |
| ``assignments`` | ``plain_assignments(targets, pure=())``: the statements that assign these targets and nothing else |
| ``methods`` | ``inline_method(caller, callee)``: ``caller`` ends in ``return self.callee(...)`` |
| ``folding`` | ``fold_parameter(function, name, value)``: uses, signature, docstring; its calls: ``drop_argument`` |
| | ``fold_local(function, name, value, pure=())``: uses and assignments |
| | ``fold_expression(expression, value)``: with the ``if`` it decides and what becomes unreachable |
| ``definitions`` | ``delete_definition(definition)``; ``delete_calls(calls)``: the statements that are such calls |
| | ``function_node(tree, body)``: the node of a function in the facts |
| ``imports`` | ``drop_imports(names)``: those that nothing uses any more; ``unused_imports(names)``: which it would take |
| | ``drop_exports(names)``: from ``__all__`` |
| ``names`` | ``drop_local(function, name, pure=())``: a local that is only written |
| | ``rename_local(function, old, new)``: uses of a parameter or local in one function, nested ones too |
| ``calls`` | ``drop_argument(call, keyword, position=None)``; ``rename_keyword(call, old, new)`` |
| ``arguments`` | ``add_keyword(call, name, code)``; ``to_list(tuple)``: a written tuple as a list |
| ``insertion`` | ``insert_element(elements, index, code, opening)``: a parameter or argument; dropping it restores the text |
| ``new_imports`` | ``extend_import(statement, name)``; ``add_import(module, name)``: of the standard library, at the top |
| ``signatures`` | ``rename_parameter(function, old, new)``: with uses and docstring; ``drop_parameter(function, name)`` |
| | ``add_parameter(function, code, after=None, keyword_only=False)``; ``set_default(function, name, code or None)`` |
| ``docstrings`` | ``drop_docstring_parameter(definition, name)``; ``rename_docstring_parameter(definition, old, new)`` |
| ``assertions`` | ``replace_assertion(statement, condition, message=None)``: code for both |

Comments are removed with the code that they belong to, and kept otherwise: :mod:`opschema_cli.migrate.codemods.layout`.
"""
